package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// compareFolders compares the files of two releases, prints what differs, and fails if anything does.
func compareFolders(one, two string, out io.Writer) error {
	first, err := readFolder(one)
	if err != nil {
		return err
	}
	second, err := readFolder(two)
	if err != nil {
		return err
	}
	if len(first) == 0 {
		return fmt.Errorf("%s holds no files", one)
	}
	differences := 0
	for _, name := range unionNames(first, second) {
		a, inFirst := first[name]
		b, inSecond := second[name]
		switch {
		case !inFirst:
			fmt.Fprintf(out, "%s: only in %s\n", name, two)
		case !inSecond:
			fmt.Fprintf(out, "%s: only in %s\n", name, one)
		case !bytes.Equal(a, b):
			fmt.Fprintf(out, "%s: %s\n", name, describeDifference(name, a, b))
		default:
			continue
		}
		differences++
	}
	if differences > 0 {
		return fmt.Errorf("%d of %d files differ", differences, len(unionNames(first, second)))
	}
	fmt.Fprintf(out, "%d files, equal byte for byte\n", len(first))
	return nil
}

func readFolder(dir string) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read release: %w", err)
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read release: %w", err)
		}
		files[entry.Name()] = content
	}
	return files, nil
}

func unionNames(first, second map[string][]byte) []string {
	all := maps.Clone(first)
	maps.Copy(all, second)
	return slices.Sorted(maps.Keys(all))
}

// describeDifference names the members of an archive that differ, or the first byte of any other file.
func describeDifference(name string, a, b []byte) string {
	first, err := listMembers(name, a)
	if err == nil && first != nil {
		second, err := listMembers(name, b)
		if err == nil {
			return describeMembers(first, second)
		}
	}
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	return fmt.Sprintf("differs from byte %d on, line %d; %d and %d bytes", at, bytes.Count(a[:at], []byte("\n"))+1, len(a), len(b))
}

func describeMembers(first, second map[string][]byte) string {
	var differ []string
	for _, name := range unionNames(first, second) {
		a, inFirst := first[name]
		b, inSecond := second[name]
		if inFirst != inSecond || !bytes.Equal(a, b) {
			differ = append(differ, name)
		}
	}
	if differ == nil {
		return "the same members, packed differently"
	}
	return "differs in " + strings.Join(differ, ", ")
}

// listMembers returns the headers and checksums of an archive's members; nil for what is no archive.
func listMembers(name string, content []byte) (map[string][]byte, error) {
	switch {
	case strings.HasSuffix(name, ".zip"):
		return listZip(content)
	case strings.HasSuffix(name, ".tar"):
		return listTar(bytes.NewReader(content))
	case strings.HasSuffix(name, ".tgz"), strings.HasSuffix(name, ".tar.gz"):
		unpacked, err := gzip.NewReader(bytes.NewReader(content))
		if err != nil {
			return nil, err
		}
		return listTar(unpacked)
	}
	return nil, nil
}

func listTar(r io.Reader) (map[string][]byte, error) {
	members := map[string][]byte{}
	archive := tar.NewReader(r)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return members, nil
		}
		if err != nil {
			return nil, err
		}
		sum := sha256.New()
		fmt.Fprintln(sum, header.Mode, header.ModTime.Unix(), header.Uid, header.Uname)
		if _, err := io.Copy(sum, archive); err != nil {
			return nil, err
		}
		members[header.Name] = sum.Sum(nil)
	}
}

func listZip(content []byte) (map[string][]byte, error) {
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, err
	}
	members := map[string][]byte{}
	for _, file := range archive.File {
		members[file.Name] = fmt.Appendln(nil, file.Mode(), file.Modified.Unix(), file.CRC32, file.UncompressedSize64)
	}
	return members, nil
}
