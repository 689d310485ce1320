package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// place is what a server's CPU time is used for.
type place string

// The places. A library belongs to what calls it.
const (
	inKernel     place = "the kernel" // system calls
	inMemory     place = "memory"     // allocation and garbage collection
	inHTTP       place = "net/http"   // connections, headers, the client of webhooks and replies
	inPGX        place = "pgx"        // the client of PostgreSQL
	inPhoneProof place = "PhoneProof"
	inScheduler  place = "the scheduler of Go"
)

// places are all of them, in the order of the report.
//
//nolint:gochecknoglobals // Go has no constant slices
var places = []place{inPhoneProof, inHTTP, inPGX, inMemory, inScheduler, inKernel}

// readShares returns which share of the CPU time of a profile was used in each place.
func readShares(file string) (map[place]float64, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p, err := profile.ParseData(content)
	if err != nil {
		return nil, fmt.Errorf("parse profile %s: %w", file, err)
	}
	time := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Unit == "nanoseconds" })
	if time < 0 {
		return nil, fmt.Errorf("%s is no profile of CPU time", file)
	}
	shares, all := map[place]float64{}, 0.0
	for _, s := range p.Sample {
		used := float64(s.Value[time])
		shares[findPlace(listFunctions(s))] += used
		all += used
	}
	for where := range shares {
		shares[where] /= all
	}
	return shares, nil
}

// listFunctions returns the names of the functions of a sample, the innermost first.
func listFunctions(s *profile.Sample) []string {
	var names []string
	for _, l := range s.Location {
		for _, line := range l.Line {
			names = append(names, line.Function.Name)
		}
	}
	return names
}

// findPlace returns what a stack of functions, the innermost first, is a part of.
func findPlace(stack []string) place {
	if slices.ContainsFunc(stack, isAboutMemory) {
		return inMemory
	}
	if len(stack) > 0 && isSystemCall(stack[0]) {
		return inKernel
	}
	for _, name := range stack {
		switch {
		case strings.HasPrefix(name, "github.com/phoneproof/"):
			return inPhoneProof
		case strings.HasPrefix(name, "net/http.") || strings.HasPrefix(name, "net/http/"):
			return inHTTP
		case strings.HasPrefix(name, "github.com/jackc/"):
			return inPGX
		}
	}
	return inScheduler
}

func isAboutMemory(name string) bool {
	return name == "runtime.mallocgc" || slices.ContainsFunc(
		[]string{"runtime.gc", "runtime.bgsweep", "runtime.bgscavenge", "runtime.newobject", "runtime.makeslice", "runtime.growslice"},
		func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

func isSystemCall(name string) bool {
	return strings.HasPrefix(name, "internal/runtime/syscall") || strings.HasPrefix(name, "syscall.") ||
		slices.Contains([]string{"runtime.futex", "runtime.madvise", "runtime.usleep", "runtime.write1"}, name)
}
