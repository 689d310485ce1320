// Command image puts static binaries into an OCI image, with nothing beside them: no shell, no libc, no package to patch.
//
//	image -out ARCHIVE -name NAME -created TIME [-label KEY=VALUE]... [-max-mb N] OS/ARCH=BINARY...
//
// One platform makes an image, several make an index of images. It needs neither root nor a daemon nor a network, and the same
// binaries and flags give the same bytes. The digest is written to ARCHIVE.digest.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
}

// options say what the image is called and consists of.
type options struct {
	out, name string
	program   string // its name in the image
	created   time.Time
	labels    map[string]string
	maxMB     int64
	binaries  []binary
}

// binary is the program for one platform.
type binary struct {
	os, arch string
	file     string
}

func run(args []string, out io.Writer) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	digest, err := writeArchive(o)
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.out+".digest", []byte(digest+"\n"), 0o644); err != nil {
		return fmt.Errorf("write digest: %w", err)
	}
	var platforms []string
	for _, b := range o.binaries {
		platforms = append(platforms, b.os+"/"+b.arch)
	}
	_, err = fmt.Fprintf(out, "image: %s, %s, %s\n", o.out, strings.Join(platforms, " "), digest)
	return err
}

func parseOptions(args []string) (options, error) {
	o := options{labels: map[string]string{}}
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.StringVar(&o.out, "out", "", "archive to write")
	flags.StringVar(&o.name, "name", "", "name of the image, with a tag")
	flags.StringVar(&o.program, "program", "phoneproof", "name of the program in the image")
	flags.Int64Var(&o.maxMB, "max-mb", 0, "largest binary in MB; 0 for any")
	flags.Func("created", "time of the image and of its files, in RFC 3339", func(s string) (err error) {
		o.created, err = time.Parse(time.RFC3339, s)
		return err
	})
	flags.Func("label", "label of the image, as KEY=VALUE", func(s string) error {
		key, value, found := strings.Cut(s, "=")
		if !found || key == "" {
			return errors.New("want KEY=VALUE")
		}
		o.labels[key] = value
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for _, arg := range flags.Args() {
		platform, file, found := strings.Cut(arg, "=")
		system, arch, slash := strings.Cut(platform, "/")
		if !found || !slash {
			return o, fmt.Errorf("want OS/ARCH=BINARY, not %q", arg)
		}
		o.binaries = append(o.binaries, binary{system, arch, filepath.Clean(file)})
	}
	if colon := strings.LastIndexByte(o.name, ':'); colon <= strings.LastIndexByte(o.name, '/') {
		return o, fmt.Errorf("-name %q has no tag", o.name)
	}
	if o.out == "" || o.created.IsZero() || len(o.binaries) == 0 {
		return o, errors.New("-out, -created and at least one OS/ARCH=BINARY are required")
	}
	return o, nil
}
