// Command kubernetes is a whole Kubernetes in one binary: it becomes the component that it is called as.
//
// It lets the tests run against a real API server where neither a container registry nor a download server can be
// reached: everything is compiled from the Go modules that upstream publishes. One binary shares the code that the
// components have in common, so it builds several times faster than seven binaries and is several times smaller.
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
