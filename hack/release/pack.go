package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name    string
	mode    int64
	content []byte
}

// packFiles writes an archive of files, each given as FILE or NAME=FILE, whose format follows from its name. Folders are packed
// with all files in them.
func packFiles(out, root string, modified time.Time, files []string) error {
	var entries []entry
	for _, arg := range files {
		name, file, found := strings.Cut(arg, "=")
		if !found {
			name, file = filepath.Base(arg), arg
		}
		read, err := readEntries(path.Join(root, name), file)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		entries = append(entries, read...)
	}
	target, err := os.Create(out)
	if err != nil {
		return fmt.Errorf("create archive: %w", err)
	}
	defer target.Close() //nolint:errcheck // closed below
	if strings.HasSuffix(out, ".zip") {
		err = writeZip(target, modified, entries)
	} else {
		err = writeTarball(target, modified, entries)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", out, err)
	}
	return target.Close()
}

// readEntries returns a file, or all files of a folder in the order of their names.
func readEntries(name, file string) ([]entry, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		// What git does not record, such as a umask, must not reach the archive.
		mode := int64(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		return []entry{{name, mode, content}}, nil
	}
	children, err := os.ReadDir(file)
	if err != nil {
		return nil, err
	}
	var all []entry
	for _, child := range children {
		read, err := readEntries(path.Join(name, child.Name()), filepath.Join(file, child.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, read...)
	}
	// Helm reads a chart faster when Chart.yaml comes first, as in its own archives.
	slices.SortStableFunc(all, func(a, b entry) int { return chartFirst(a.name) - chartFirst(b.name) })
	return all, nil
}

func chartFirst(name string) int {
	if path.Base(name) == "Chart.yaml" {
		return 0
	}
	return 1
}

func writeTarball(w io.Writer, modified time.Time, entries []entry) error {
	compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.content)), ModTime: modified, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(e.content); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

func writeZip(w io.Writer, modified time.Time, entries []entry) error {
	archive := zip.NewWriter(w)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: modified.UTC()}
		header.SetMode(os.FileMode(e.mode)) //nolint:gosec // one of two constants
		file, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := file.Write(e.content); err != nil {
			return err
		}
	}
	return archive.Close()
}
