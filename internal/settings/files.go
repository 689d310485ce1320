package settings

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// dataLink is the symbolic link that a kubelet swaps to replace all files of a volume at once.
const dataLink = "..data"

// swapRetries limits the reads that a kubelet's swap may invalidate.
const swapRetries = 5

// SecretFiles reads secrets from DIR/SECRET/KEY, projected by a kubelet or created manually.
type SecretFiles struct {
	dir     string
	mounted Mounted
	// spare has secrets that the folder has not; nil for none.
	spare *SecretFiles
}

// NewSecretFiles returns a reader of the secrets in a folder, which need not exist yet.
func NewSecretFiles(dir string) *SecretFiles { return &SecretFiles{dir: dir} }

// Read returns the state of a project's secrets at now, given the state before. It reads only the files that the project
// refers to.
func (f *SecretFiles) Read(project *verifyv1.VerificationProject, before Secrets, now time.Time) Secrets {
	all := listUses(&project.Spec)
	refs := make(map[verifyv1.SecretKeyRef]struct{}, len(all))
	for _, u := range all {
		refs[u.ref] = struct{}{}
	}
	readings := f.readAll(refs)
	if f.spare != nil {
		maps.DeleteFunc(refs, func(ref verifyv1.SecretKeyRef, _ struct{}) bool { return readings[ref].reason != ReasonMissing })
		maps.Copy(readings, f.spare.readAll(refs))
	}
	for ref, r := range readings {
		if r.reason == ReasonMissing && !f.mounted.has(ref) {
			readings[ref] = reading{reason: ReasonNotMounted}
		}
	}
	return before.applyReadings(all, readings, now)
}

func (f *SecretFiles) readAll(refs map[verifyv1.SecretKeyRef]struct{}) map[verifyv1.SecretKeyRef]reading {
	readings := make(map[verifyv1.SecretKeyRef]reading, len(refs))
	// A Root keeps links from reaching files that are not secrets, such as the pod's own token.
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		for ref := range refs {
			readings[ref] = classifyError(err)
		}
		return readings
	}
	defer root.Close() //nolint:errcheck // nothing was written
	for range swapRetries {
		generation := identifyVolumes(root, refs)
		for ref := range refs {
			readings[ref] = readSecret(root, ref)
		}
		// A swap removes the old files: without a second check, a replaced secret would look deleted.
		if maps.Equal(identifyVolumes(root, refs), generation) {
			return readings
		}
	}
	for ref, r := range readings {
		if r.reason == ReasonMissing {
			readings[ref] = reading{reason: ReasonUnreadable, unknown: true}
		}
	}
	return readings
}

// identifyVolumes returns the targets of the kubelet's links: all Secrets in one volume, or each in its own.
func identifyVolumes(root *os.Root, refs map[verifyv1.SecretKeyRef]struct{}) map[string]string {
	targets := map[string]string{}
	targets[dataLink], _ = root.Readlink(dataLink) // a missing link is a valid state
	for ref := range refs {
		link := path.Join(ref.Name, dataLink)
		if _, known := targets[link]; !known && isLocalName(ref.Name) {
			targets[link], _ = root.Readlink(link)
		}
	}
	return targets
}

func readSecret(root *os.Root, ref verifyv1.SecretKeyRef) reading {
	if !isLocalName(ref.Name) || !isLocalName(ref.Key) {
		return reading{reason: ReasonUnreadable}
	}
	name := path.Join(ref.Name, ref.Key)
	// Check before opening: opening a pipe would block until its other end is open.
	info, err := root.Stat(name)
	if err != nil {
		return classifyError(err)
	}
	if !info.Mode().IsRegular() {
		return reading{reason: ReasonUnreadable}
	}
	file, err := root.Open(name)
	if err != nil {
		return classifyError(err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	content, err := io.ReadAll(io.LimitReader(file, maxSecret+int64(len("\r\n"))+1))
	if err != nil {
		return classifyError(err)
	}
	return readContent(content)
}

func readContent(content []byte) reading {
	value := trimNewline(content)
	switch {
	case len(value) == 0:
		return reading{reason: ReasonEmpty}
	case len(value) > maxSecret:
		return reading{reason: ReasonTooLong}
	default:
		return reading{value: value, newline: len(value) < len(content)}
	}
}

// trimNewline removes one trailing newline, as left by editors and echo. A second one belongs to the value.
func trimNewline(content []byte) []byte {
	n := len(content)
	if n > 0 && content[n-1] == '\n' {
		n--
		if n > 0 && content[n-1] == '\r' {
			n--
		}
	}
	return content[:n]
}

// isLocalName reports whether a name is a single path element that does not belong to the kubelet. The schema checks it
// already; this is a second barrier.
func isLocalName(name string) bool {
	return name != "" && !strings.ContainsAny(name, `/\`) && !strings.HasPrefix(name, "..") && filepath.IsLocal(name) && name != "."
}

// classifyError returns the reading for an error of a file.
func classifyError(err error) reading {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return reading{reason: ReasonMissing}
	case isTransient(err):
		return reading{reason: ReasonUnreadable, unknown: true}
	default:
		return reading{reason: ReasonUnreadable}
	}
}

// isTransient reports whether an error comes from the state of this process or its disk, not from the file. Running out of
// file descriptors must not revoke a secret.
func isTransient(err error) bool {
	for _, temporary := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO, syscall.EINTR, syscall.EAGAIN, syscall.ESTALE,
	} {
		if errors.Is(err, temporary) {
			return true
		}
	}
	return false
}
