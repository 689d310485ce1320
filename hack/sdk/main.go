// Command sdk packs the Go library as files that a proxy of modules serves, so that `go get` takes it with GOPROXY=file://FOLDER.
//
//	sdk -version v0.1.0 -time 2026-11-27T00:00:00Z -out FOLDER sdk/go
//
// What it writes follows from its arguments alone: the same files and flags give the same bytes.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

func main() {
	version := flag.String("version", "", "version of the module, such as v0.1.0")
	at := flag.String("time", "", "time of the version, in RFC 3339")
	out := flag.String("out", "", "folder of the proxy")
	flag.Parse()
	if err := pack(flag.Arg(0), *out, *version, *at); err != nil {
		fmt.Fprintln(os.Stderr, "sdk:", err)
		os.Exit(1)
	}
}

// pack writes the files of a version: https://go.dev/ref/mod#goproxy-protocol.
func pack(source, out, version, at string) error {
	if source == "" || out == "" {
		return errors.New("usage: sdk -version VERSION -time TIME -out FOLDER SOURCE")
	}
	modified, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return err
	}
	path := modfile.ModulePath(mod)
	if err := module.Check(path, version); err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": modified.UTC()})
	if err != nil {
		return err
	}
	folder := filepath.Join(out, path, "@v") // the path has no capitals, which would be escaped
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, content := range map[string][]byte{"list": []byte(version + "\n"), version + ".info": info, version + ".mod": mod} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return err
		}
	}
	archive, err := os.Create(filepath.Join(folder, version+".zip"))
	if err != nil {
		return err
	}
	if err := zip.CreateFromDir(archive, module.Version{Path: path, Version: version}, source); err != nil {
		return errors.Join(err, archive.Close())
	}
	return archive.Close()
}
