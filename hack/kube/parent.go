package main

import (
	"os"
	"time"
)

// parentVariable, set to anything, ties a component's life to that of the process that started it.
const parentVariable = "PHONEPROOF_DIE_WITH_PARENT"

// dieWithParent ends this process soon after its parent has ended. A test binary that panics or runs into its timeout
// has no chance to stop its API server, and every one left behind would hold 400 MB.
func dieWithParent() {
	parent := os.Getppid()
	go func() {
		for range time.Tick(time.Second) {
			if os.Getppid() != parent {
				os.Exit(1)
			}
		}
	}()
}
