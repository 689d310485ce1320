package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is a number, because runAsNonRoot cannot check a name and there is no /etc/passwd to look one up in.
const user = "65532:65532"

// writeArchive writes the OCI archive and returns the digest of the image, or of the index of several.
func writeArchive(o options) (digest string, err error) {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return "", fmt.Errorf("make folder: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder below TMPDIR
	var images []mutate.IndexAddendum
	for _, b := range o.binaries {
		image, err := newImage(o, b)
		if err != nil {
			return "", fmt.Errorf("image of %s: %w", b.file, err)
		}
		images = append(images, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: b.os, Architecture: b.arch}},
		})
	}
	// Docker and containerd each look for the name in an annotation of their own.
	annotations := layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          o.name,
		"org.opencontainers.image.ref.name": o.name[strings.LastIndexByte(o.name, ':')+1:],
	})
	path, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return "", fmt.Errorf("write layout: %w", err)
	}
	var hash v1.Hash
	if len(images) == 1 {
		image := images[0].Add.(v1.Image) //nolint:forcetypeassert // made above
		if err := path.AppendImage(image, annotations); err != nil {
			return "", fmt.Errorf("write image: %w", err)
		}
		hash, err = image.Digest()
	} else {
		index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), images...)
		index = mutate.Annotations(index, o.labels).(v1.ImageIndex) //nolint:forcetypeassert // as its comment says
		if err := path.AppendIndex(index, annotations); err != nil {
			return "", fmt.Errorf("write index: %w", err)
		}
		hash, err = index.Digest()
	}
	if err != nil {
		return "", fmt.Errorf("digest: %w", err)
	}
	return hash.String(), packLayout(o, dir)
}

// newImage returns an image of one layer with one file.
func newImage(o options, b binary) (v1.Image, error) {
	content, err := os.ReadFile(b.file)
	if err != nil {
		return nil, err
	}
	if size := int64(len(content)); o.maxMB > 0 && size > o.maxMB*1e6 {
		return nil, fmt.Errorf("%d MB, more than the %d MB it may be", (size+999_999)/1_000_000, o.maxMB)
	}
	var packed bytes.Buffer
	archive := tar.NewWriter(&packed)
	header := &tar.Header{Name: o.program, Mode: 0o555, Size: int64(len(content)), ModTime: o.created, Format: tar.FormatUSTAR}
	if err := writeEntry(archive, header, content); err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("close layer: %w", err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("make layer: %w", err)
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{
		Layer: layer, History: v1.History{Created: v1.Time{Time: o.created}, CreatedBy: "hack/release/image"},
	})
	if err != nil {
		return nil, fmt.Errorf("append layer: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = b.os, b.arch, v1.Time{Time: o.created}
	config.Config = v1.Config{User: user, Entrypoint: []string{"/" + o.program}, Labels: o.labels}
	image, err = mutate.ConfigFile(image, config)
	if err != nil {
		return nil, fmt.Errorf("write config: %w", err)
	}
	return image, nil
}

// packLayout packs the files of an OCI layout into an archive, in the order of their names.
func packLayout(o options, dir string) error {
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	file, err := os.Create(o.out)
	if err != nil {
		return fmt.Errorf("create archive: %w", err)
	}
	defer file.Close() //nolint:errcheck // closed below
	archive := tar.NewWriter(file)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		header := &tar.Header{
			Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(content)), ModTime: o.created, Format: tar.FormatUSTAR,
		}
		return writeEntry(archive, header, content)
	})
	if err != nil {
		return fmt.Errorf("pack layout: %w", err)
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("close archive: %w", err)
	}
	return file.Close()
}

func writeEntry(archive *tar.Writer, header *tar.Header, content []byte) error {
	if err := archive.WriteHeader(header); err != nil {
		return fmt.Errorf("write header of %s: %w", header.Name, err)
	}
	if _, err := archive.Write(content); err != nil {
		return fmt.Errorf("write %s: %w", header.Name, err)
	}
	return nil
}
