package settings

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// maxProjectFile is the size limit in bytes: more than an API server stores.
const maxProjectFile = 1 << 20

// defaultNamespace is the namespace of a project file that names none, as in kubectl.
const defaultNamespace = "default"

// File keeps settings up to date with a project file, which is the custom resource as YAML, and with secret files.
type File struct {
	path string
	live *Live
	// content is the last content read. After NewFile, only Start uses it.
	content []byte
}

// NewFile reads a project file and the secrets in a folder. It returns an error if the project cannot be read or is invalid.
// Secrets that cannot be used are listed in Problems.
func NewFile(projectFile, secretsDir string, clk clock.Clock, log logr.Logger) (*File, error) {
	return NewFileWithSpare(projectFile, secretsDir, "", clk, log)
}

// NewFileWithSpare is NewFile with a second folder of secrets, for those that the first has not; empty for none.
func NewFileWithSpare(projectFile, secretsDir, spareDir string, clk clock.Clock, log logr.Logger) (*File, error) {
	f := &File{path: projectFile, live: NewLive(secretsDir, clk, log)}
	if spareDir != "" {
		f.live.files.spare = NewSecretFiles(spareDir)
	}
	content, err := readProject(projectFile)
	if err != nil {
		return nil, err
	}
	project, err := decodeProject(content)
	if err == nil {
		err = f.live.SetProject(project)
	}
	if err != nil {
		return nil, fmt.Errorf("project file %s: %w", projectFile, err)
	}
	f.content = content
	return f, nil
}

// Current returns the current settings; never nil.
func (f *File) Current() *Settings { return f.live.Current() }

// Problems returns the secrets that cannot be used.
func (f *File) Problems() []Problem { return f.live.Problems() }

// LastError returns why the present project file is rejected; nil if it is in use.
func (f *File) LastError() error { return f.live.LastError() }

// Subscribe returns a channel that receives a coalesced value after each change, and a function that ends the
// subscription.
func (f *File) Subscribe() (changes <-chan struct{}, cancel func()) { return f.live.Subscribe() }

// Start polls the project file and the secret files until ctx ends.
func (f *File) Start(ctx context.Context) error { return pollFiles(ctx, f.live.clock, f.reloadFiles) }

// NeedLeaderElection returns false: every replica has settings.
func (f *File) NeedLeaderElection() bool { return false }

// reloadFiles reads the project and its secrets again. LastError keeps an error of the project file.
func (f *File) reloadFiles() {
	content, err := readProject(f.path)
	if err == nil && f.content != nil && bytes.Equal(content, f.content) {
		f.live.reloadSecrets()
		return
	}
	f.content = content
	var project *verifyv1.VerificationProject
	if err == nil {
		project, err = decodeProject(content)
	}
	if err != nil {
		f.live.rejectUnreadable(err)
		return
	}
	_ = f.live.SetProject(project) // it keeps and logs its error
}

// readProject returns the content of a project file; never nil without an error.
func readProject(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("find the project file: %w", err)
	}
	if !info.Mode().IsRegular() { // opening a pipe would block until its other end is open
		return nil, fmt.Errorf("the project file %s is not a regular file", path)
	}
	file, err := os.Open(path) //nolint:gosec // the path is the administrator's
	if err != nil {
		return nil, fmt.Errorf("open the project file: %w", err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	content, err := io.ReadAll(io.LimitReader(file, maxProjectFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the project file: %w", err)
	case len(content) > maxProjectFile:
		return nil, fmt.Errorf("the project file %s has more than %d bytes", path, maxProjectFile)
	default:
		return content, nil
	}
}

// quoted matches the quoted parts of decoder errors: after some words a field's name, else a value.
var quoted = regexp.MustCompile(`((?:unknown|duplicate) field |key )?("[^"]*"|'[^']*'|` + "`[^`]*`" + `)`)

// redactValues returns err without the values of the file, because a user may put a token into the wrong field.
func redactValues(err error) error {
	return errors.New(quoted.ReplaceAllStringFunc(err.Error(), func(found string) string {
		if strings.HasPrefix(found, "unknown field ") || strings.HasPrefix(found, "duplicate field ") || strings.HasPrefix(found, "key ") {
			return found
		}
		return "(a value)"
	}))
}

// decodeProject returns the project of a file, which must hold exactly one.
func decodeProject(content []byte) (*verifyv1.VerificationProject, error) {
	project, err := verifyv1.DecodeProject(content)
	if err != nil {
		return nil, redactValues(err)
	}
	if project.Namespace == "" {
		project.Namespace = defaultNamespace
	}
	// In a cluster the namespace exists. Stores use NAMESPACE/NAME, so a slash could imitate another project.
	if wrong := validation.IsDNS1123Label(project.Namespace); len(wrong) > 0 {
		return nil, errors.New("metadata.namespace: " + strings.Join(wrong, "; "))
	}
	return project, nil
}
