package settings

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// maxProjectFile is more than an API server stores.
const maxProjectFile = 1 << 20

// defaultNamespace is the namespace of a project file that names none, as kubectl has it.
const defaultNamespace = "default"

// File keeps settings current that come from a project file, which is the custom resource as YAML, and secret files.
type File struct {
	path string
	live *Live
	// content is what the file held when it was read last. Only Start touches it after NewFile.
	content []byte
}

// NewFile reads a project file and the secrets in a folder. A project that cannot be read or is invalid is an error;
// a secret is a Problem.
func NewFile(projectFile, secretsDir string, clk clock.Clock, log logr.Logger) (*File, error) {
	f := &File{path: projectFile, live: NewLive(secretsDir, clk, log)}
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

// Current returns the settings of this moment; never nil.
func (f *File) Current() *Settings { return f.live.Current() }

// Problems returns the secrets that cannot be used.
func (f *File) Problems() []Problem { return f.live.Problems() }

// LastError returns why the project file, as it is now, does not count; nil if it does.
func (f *File) LastError() error { return f.live.LastError() }

// Subscribe returns a channel that gets a value, coalesced, after each change, and a function that ends the
// subscription.
func (f *File) Subscribe() (changes <-chan struct{}, cancel func()) { return f.live.Subscribe() }

// Start follows the project file and the secret files until ctx ends.
func (f *File) Start(ctx context.Context) error {
	return watch(ctx, f.live.clock, f.live.log, watched{dirs: f.dirs, reload: f.reload})
}

// NeedLeaderElection says that every replica has settings.
func (f *File) NeedLeaderElection() bool { return false }

func (f *File) dirs() []string {
	return append(f.live.dirs(), filepath.Dir(f.path), filepath.Dir(resolved(f.path)))
}

// reload reads everything again. What is wrong with the file is kept for LastError.
func (f *File) reload() {
	content, err := readProject(f.path)
	if err == nil && f.content != nil && bytes.Equal(content, f.content) {
		f.live.reload()
		return
	}
	f.content = content
	var project *verifyv1.VerificationProject
	if err == nil {
		project, err = decodeProject(content)
	}
	if err != nil {
		f.live.keep(err)
		return
	}
	_ = f.live.SetProject(project) // which keeps and logs its error
}

// readProject returns the content of a project file, never nil without an error.
func readProject(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("find the project file: %w", err)
	}
	if !info.Mode().IsRegular() { // to open a pipe would wait for its other end
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

// quoted finds what decoders quote. After some words it is a field's name, else a value.
var quoted = regexp.MustCompile(`((?:unknown|duplicate) field |key )?("[^"]*"|'[^']*'|` + "`[^`]*`" + `)`)

// withoutValues returns err with the values of the file left out: somebody will put a token into the wrong field.
func withoutValues(err error) error {
	return errors.New(quoted.ReplaceAllStringFunc(err.Error(), func(found string) string {
		if strings.HasPrefix(found, "unknown field ") || strings.HasPrefix(found, "duplicate field ") || strings.HasPrefix(found, "key ") {
			return found
		}
		return "(a value)"
	}))
}

// decodeProject returns the one project of a file.
func decodeProject(content []byte) (*verifyv1.VerificationProject, error) {
	project, err := verifyv1.DecodeProject(content)
	if err != nil {
		return nil, withoutValues(err)
	}
	if project.Namespace == "" {
		project.Namespace = defaultNamespace
	}
	// On a cluster the namespace exists. The project's name in stores is NAMESPACE/NAME, so a slash would forge another.
	if wrong := validation.IsDNS1123Label(project.Namespace); len(wrong) > 0 {
		return nil, errors.New("metadata.namespace: " + strings.Join(wrong, "; "))
	}
	return project, nil
}
