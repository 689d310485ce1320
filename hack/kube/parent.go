package main

import (
	"os"
	"time"
)

// parentVariable, with any value, makes a component end with the process that started it.
const parentVariable = "PHONEPROOF_DIE_WITH_PARENT"

// dieWithParent ends this process soon after its parent has ended. A test binary that panics or times out cannot stop its API
// server, and each one left behind would use 400 MB.
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
