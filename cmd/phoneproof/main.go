// Command phoneproof is the operator, the verification server and the tools around them, in one static binary.
package main

import (
	"os"

	"github.com/phoneproof/phoneproof/cmd/phoneproof/app"
	"github.com/phoneproof/phoneproof/internal/server"
)

func main() {
	os.Exit(app.Main(server.Dependencies{}))
}
