package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// inputs are the files that a suite's outcome depends on: those of its package's folder, of everything that it imports,
// and those that every suite may read.
type inputs struct {
	root   string
	deps   map[string][]string // folders by the folder of a package with tests
	hashes map[string]string   // by folder, with or without its tests
}

// commonInputs are read by suites of any package.
var commonInputs = []string{"go.mod", "go.sum", "charts/phoneproof/files", "config", "api"}

// listInputs lists, by the go command, what the packages of suites import.
func listInputs(ctx context.Context, root string, packages []string) (*inputs, error) {
	in := &inputs{root: root, deps: map[string][]string{}, hashes: map[string]string{}}
	module, err := runGo(ctx, root, "list", "-m")
	if err != nil {
		return nil, err
	}
	args := append([]string{"list", "-test", "-f", `{{.ImportPath}} {{join .Deps " "}}`}, packages...)
	lines, err := runGo(ctx, root, args...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(lines) {
		words := strings.Fields(line)
		own, isTest := strings.CutSuffix(words[0], ".test")
		if !isTest {
			continue
		}
		var folders []string
		for _, path := range append(words[1:], own) {
			if folder, ours := strings.CutPrefix(path, strings.TrimSpace(module)+"/"); ours && !strings.Contains(folder, " ") {
				folders = append(folders, folder)
			}
		}
		slices.Sort(folders)
		folder := "./" + strings.TrimPrefix(own, strings.TrimSpace(module)+"/")
		in.deps[folder] = slices.Compact(folders)
	}
	return in, nil
}

// hashSuite returns a hash of all files that the suite depends on.
func (in *inputs) hashSuite(s Suite) (string, error) {
	folders := append(slices.Clone(commonInputs), in.deps[s.Package]...)
	if s.Whole {
		folders = append(slices.Clone(commonInputs), "cmd", "controllers", "internal", "test", "charts")
	}
	h := sha256.New()
	for _, folder := range folders {
		// Tests of another package cannot be imported.
		sum, err := in.hashFolder(folder, s.Whole || "./"+folder == s.Package)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %s\n", folder, sum)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashFolder hashes a file, or all files of a folder, with or without its tests. It leaves out this program, whose list
// is no input of a suite.
func (in *inputs) hashFolder(folder string, withTests bool) (string, error) {
	name := fmt.Sprint(folder, withTests)
	if sum, known := in.hashes[name]; known {
		return sum, nil
	}
	h := sha256.New()
	err := filepath.WalkDir(filepath.Join(in.root, folder), func(path string, d fs.DirEntry, err error) error {
		switch {
		case os.IsNotExist(err):
			return nil
		case err != nil:
			return err
		case d.IsDir() && path == filepath.Join(in.root, "test", "mutants"):
			return fs.SkipDir
		case !d.Type().IsRegular(), !withTests && strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(in.root, path) // results are valid for any checkout of the same files
		fmt.Fprintf(h, "%s %x\n", name, sha256.Sum256(text))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("hash %s: %w", folder, err)
	}
	in.hashes[name] = hex.EncodeToString(h.Sum(nil))
	return in.hashes[name], nil
}

func runGo(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, problems.Bytes())
	}
	return string(out), nil
}
