package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// licenseFile matches the names that projects give their licences and notices.
var licenseFile = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|patents)([-._].*)?$`)

// writeLicenses writes the licences of the modules in a Go binary, which most of them require to come along, and fails if a
// module has none.
func writeLicenses(ctx context.Context, out, binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read %s: %w", binary, err)
	}
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("find Go: %w", err)
	}
	var all bytes.Buffer
	all.WriteString("Licences of what is in this program beside PhoneProof itself.\n")
	if err := appendLicenses(&all, "Go", string(bytes.TrimSpace(goroot))); err != nil {
		return err
	}
	modules := make([]string, len(info.Deps))
	for i, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules[i] = m.Path + "@" + m.Version
	}
	folders, err := findModules(ctx, modules)
	if err != nil {
		return err
	}
	for _, module := range modules {
		if err := appendLicenses(&all, module, folders[module]); err != nil {
			return err
		}
	}
	return os.WriteFile(out, all.Bytes(), 0o644)
}

// findModules returns the folders of modules in Go's module cache, where a build has left them.
func findModules(ctx context.Context, modules []string) (map[string]string, error) {
	folders := map[string]string{}
	if len(modules) == 0 {
		return folders, nil
	}
	output, err := exec.CommandContext(ctx, "go", append([]string{"mod", "download", "-json"}, modules...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("find modules: %w", err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var found struct {
			Path    string `json:"Path"`
			Version string `json:"Version"`
			Dir     string `json:"Dir"`
		}
		err := decoder.Decode(&found)
		if errors.Is(err, io.EOF) {
			return folders, nil
		}
		if err != nil {
			return nil, fmt.Errorf("find modules: %w", err)
		}
		folders[found.Path+"@"+found.Version] = found.Dir
	}
}

func appendLicenses(all *bytes.Buffer, name, dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("licences of %s: %w", name, err)
	}
	before := all.Len()
	for _, file := range files {
		if file.IsDir() || !licenseFile.MatchString(file.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			return fmt.Errorf("licences of %s: %w", name, err)
		}
		fmt.Fprintf(all, "\n==== %s: %s\n\n%s\n", name, file.Name(), bytes.TrimSpace(content))
	}
	if all.Len() == before {
		return errors.New(name + " has no licence in " + dir)
	}
	return nil
}
