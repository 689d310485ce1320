// Command phoneproof is the program for benchmarks and fault injection; see test/program.
package main

import (
	"os"

	"github.com/phoneproof/phoneproof/test/program"
)

func main() {
	os.Exit(program.Main())
}
