// Command phoneproof is the program of measurements and faults; see test/program.
package main

import (
	"os"

	"github.com/phoneproof/phoneproof/test/program"
)

func main() {
	os.Exit(program.Main())
}
