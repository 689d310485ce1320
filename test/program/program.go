// Package program is phoneproof as tests and benchmarks run it: its webhooks may go to loopback, where the receivers are, the
// health of its stores is checked more often, an environment variable shifts its clock, and it serves its profiles. None of
// that is in the released program.
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
	// ClockOffset is the environment variable with the duration by which the process sees its machine's clock ahead.
	ClockOffset = "PHONEPROOF_TEST_CLOCK_OFFSET"
	// ProfileAddress is the environment variable with the address at which the process serves its profiles; see net/http/pprof.
	ProfileAddress = "PHONEPROOF_TEST_PPROF_ADDRESS"
)

// Main runs the command that the process's arguments select, and returns its exit code.
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

// wrongClock is a clock that is off by an offset.
type wrongClock struct {
	clock.Clock

	offset time.Duration
}

// Now returns the shifted time.
func (c wrongClock) Now() time.Time { return c.Clock.Now().Add(c.offset) }

// Since returns the time elapsed since a shifted time.
func (c wrongClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }
