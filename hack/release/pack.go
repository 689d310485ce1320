package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name    string
	mode    int64
	content []byte
}

// packFiles writes an archive of files, each given as FILE or NAME=FILE, whose format follows from its name.
func packFiles(out string, modified time.Time, files []string) error {
	entries := make([]entry, len(files))
	for i, arg := range files {
		name, file, found := strings.Cut(arg, "=")
		if !found {
			name, file = filepath.Base(arg), arg
		}
		var err error
		if entries[i], err = readEntry(name, file); err != nil {
			return fmt.Errorf("read file: %w", err)
		}
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

func readEntry(name, file string) (entry, error) {
	info, err := os.Stat(file)
	if err != nil {
		return entry{}, err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return entry{}, err
	}
	// What git does not record, such as a umask, must not reach the archive.
	mode := int64(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	return entry{name, mode, content}, nil
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
		header.SetMode(os.FileMode(e.mode))
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
