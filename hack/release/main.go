// Command release makes the files of a release. hack/release.sh runs it; the image is made by ./image.
//
//	release pack -out FILE.tar.gz|FILE.zip -time TIME [NAME=]FILE...
//	release sbom -out FILE -version V BINARY
//	release licenses -out FILE BINARY
//
// Whatever it writes follows from its arguments alone: the same files and flags give the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: release pack | sbom | licenses, see hack/release/main.go")

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	flags := flag.NewFlagSet("release "+args[0], flag.ContinueOnError)
	file := flags.String("out", "", "file to write")
	version := flags.String("version", "", "version of the program")
	var modified time.Time
	flags.Func("time", "time of the files in the archive, in RFC 3339", func(s string) (err error) {
		modified, err = time.Parse(time.RFC3339, s)
		return err
	})
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	rest := flags.Args()
	switch {
	case args[0] == "pack" && *file != "" && !modified.IsZero() && len(rest) > 0:
		return packFiles(*file, modified, rest)
	case args[0] == "sbom" && *file != "" && *version != "" && len(rest) == 1:
		return writeSBOM(*file, *version, rest[0])
	case args[0] == "licenses" && *file != "" && len(rest) == 1:
		return writeLicenses(ctx, *file, rest[0])
	}
	return errUsage
}
