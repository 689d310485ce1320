// Command kubernetes is all of Kubernetes in one binary: it runs the component by whose name it is called.
//
// It lets the tests run against a real API server without access to a container registry or a download server: everything is
// compiled from the Go modules that upstream publishes. The components share code, so one binary builds several times faster
// than seven binaries and is several times smaller.
package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	os.Exit(run(os.Args, os.Stderr))
}

// run starts the component that args[0] names and returns its exit code.
func run(args []string, stderr io.Writer) int {
	name := filepath.Base(args[0])
	component, ok := components[name]
	if !ok {
		names := slices.Sorted(maps.Keys(components))
		fmt.Fprintf(stderr, "%s is not a Kubernetes component.\n"+
			"Call this binary through a symbolic link with one of these names: %s.\n", name, strings.Join(names, ", "))
		return 2
	}
	if os.Getenv(parentVariable) != "" {
		dieWithParent()
	}
	return component()
}
