// Package program is phoneproof as tests and measurements run it: its webhooks may go to loopback, where the receivers are, its
// stores are asked more often how they are, its environment can make its clock wrong, and it serves its profiles. None of that
// is in the shipped program.
package program

import (
	"fmt"
	"net/http"
	_ "net/http/pprof" // serves the profiles
	"os"
	"time"

	"k8s.io/utils/clock"

	"github.com/phoneproof/phoneproof/cmd/phoneproof/app"
	"github.com/phoneproof/phoneproof/internal/server"
	"github.com/phoneproof/phoneproof/internal/webhook"
)

const (
	// ClockOffset is the variable of the environment that has the process take its machine's clock for so much ahead.
	ClockOffset = "PHONEPROOF_TEST_CLOCK_OFFSET"
	// ProfileAddress is the variable of the environment that says where the process serves its profiles; see net/http/pprof.
	ProfileAddress = "PHONEPROOF_TEST_PPROF_ADDRESS"
)

// Main runs the command of the process's arguments and returns its exit code.
func Main() int {
	dependencies := server.Dependencies{NewGuard: webhook.NewDevGuard, StoragePeriod: 5 * time.Second}
	if text := os.Getenv(ClockOffset); text != "" {
		offset, err := time.ParseDuration(text)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", ClockOffset, err)
			return 2
		}
		dependencies.Clock = wrongClock{clock.RealClock{}, offset}
	}
	if address := os.Getenv(ProfileAddress); address != "" {
		go func() { // ends with the process
			if err := http.ListenAndServe(address, nil); err != nil {
				fmt.Fprintln(os.Stderr, "serve profiles:", err)
			}
		}()
	}
	return app.Main(dependencies)
}

// wrongClock is a machine's clock that is wrong.
type wrongClock struct {
	clock.Clock

	offset time.Duration
}

// Now returns the wrong time.
func (c wrongClock) Now() time.Time { return c.Clock.Now().Add(c.offset) }

// Since returns how much time has gone since a wrong one.
func (c wrongClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
