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

// dataLink is the link that a kubelet swaps to replace all files of a volume at once.
const dataLink = "..data"

// swapRetries bounds how often everything is read again because a kubelet swapped the files meanwhile.
const swapRetries = 5

// SecretFiles reads secrets from DIR/SECRET/KEY, as a kubelet projects them or as somebody laid them out by hand.
type SecretFiles struct {
	dir     string
	mounted Mounted
}

// NewSecretFiles returns the secrets in a folder, which need not exist yet.
func NewSecretFiles(dir string) *SecretFiles { return &SecretFiles{dir: dir} }

// Read returns what the places of a project that refer to secrets have got at now, given what they had before. It reads
// nothing but the files that the project refers to.
func (f *SecretFiles) Read(project *verifyv1.VerificationProject, before Secrets, now time.Time) Secrets {
	all := uses(&project.Spec)
	refs := make(map[verifyv1.SecretKeyRef]struct{}, len(all))
	for _, u := range all {
		refs[u.ref] = struct{}{}
	}
	readings := f.read(refs)
	for ref, r := range readings {
		if r.reason == ReasonMissing && !f.mounted.has(ref) {
			readings[ref] = reading{reason: ReasonNotMounted}
		}
	}
	return before.next(all, readings, now)
}

func (f *SecretFiles) read(refs map[verifyv1.SecretKeyRef]struct{}) map[verifyv1.SecretKeyRef]reading {
	readings := make(map[verifyv1.SecretKeyRef]reading, len(refs))
	// A Root, so that no link leads to a file that is not a secret, such as the pod's own token.
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		for ref := range refs {
			readings[ref] = failed(err)
		}
		return readings
	}
	defer root.Close() //nolint:errcheck // nothing was written
	for range swapRetries {
		generation := volumes(root, refs)
		for ref := range refs {
			readings[ref] = readSecret(root, ref)
		}
		// A swap removes the old files: without a second look a secret that was replaced would seem deleted.
		if maps.Equal(volumes(root, refs), generation) {
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

// volumes identifies what a kubelet has put there: all Secrets in one volume, or each in its own.
func volumes(root *os.Root, refs map[verifyv1.SecretKeyRef]struct{}) map[string]string {
	targets := map[string]string{}
	targets[dataLink], _ = root.Readlink(dataLink) // none is a state as good as any
	for ref := range refs {
		link := path.Join(ref.Name, dataLink)
		if _, known := targets[link]; !known && localName(ref.Name) {
			targets[link], _ = root.Readlink(link)
		}
	}
	return targets
}

func readSecret(root *os.Root, ref verifyv1.SecretKeyRef) reading {
	if !localName(ref.Name) || !localName(ref.Key) {
		return reading{reason: ReasonUnreadable}
	}
	name := path.Join(ref.Name, ref.Key)
	// Before it is opened: to open a pipe would wait for its other end.
	info, err := root.Stat(name)
	if err != nil {
		return failed(err)
	}
	if !info.Mode().IsRegular() {
		return reading{reason: ReasonUnreadable}
	}
	file, err := root.Open(name)
	if err != nil {
		return failed(err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	content, err := io.ReadAll(io.LimitReader(file, maxSecret+int64(len("\r\n"))+1))
	if err != nil {
		return failed(err)
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
		return reading{value: value}
	}
}

// trimNewline cuts one newline off the end, which editors and echo leave there. A second one belongs to the value.
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

// localName tells whether a name is one step down, to what is not a kubelet's own. The schema has seen to it; this is
// the second lock.
func localName(name string) bool {
	return name != "" && !strings.ContainsAny(name, `/\`) && !strings.HasPrefix(name, "..") && filepath.IsLocal(name) && name != "."
}

// failed returns what an error tells about a file.
func failed(err error) reading {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return reading{reason: ReasonMissing}
	case ours(err):
		return reading{reason: ReasonUnreadable, unknown: true}
	default:
		return reading{reason: ReasonUnreadable}
	}
}

// ours tells whether an error comes from the state of this process or its disk: ten thousand connections use up the file
// descriptors, and no secret is revoked by that.
func ours(err error) bool {
	for _, temporary := range []error{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EIO, syscall.EINTR, syscall.EAGAIN, syscall.ESTALE,
	} {
		if errors.Is(err, temporary) {
			return true
		}
	}
	return false
}
