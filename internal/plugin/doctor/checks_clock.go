package doctor

import (
	"fmt"
	"time"
)

// clockTolerance is the difference that no signature, certificate or message minds. The header Date has whole seconds, and an answer
// may take a few.
const clockTolerance = 10 * time.Second

func clockChecks() []check {
	return []check{
		{
			name: "ClockOfThisMachine", problem: "the clock of this machine differs from the API server's",
			remedy: "set it by NTP (`timedatectl set-ntp true`), here or on the control plane, whichever is wrong",
			find: func(f *Facts) []evidence {
				return findOffset(f.ServerOffset, "this machine", "the API server")
			},
		},
		{
			name: "ClockOfPods", problem: "the clock of a pod's node differs from the API server's, so messages count as too early or too late",
			remedy: "set the clock of its node by NTP (`timedatectl set-ntp true`); `kubectl -n NAMESPACE get pods -o wide` shows the nodes",
			find: func(f *Facts) []evidence {
				return findOffset(f.PodOffset, "the pod with the project's lease", "the API server")
			},
		},
	}
}

func findOffset(offset Known[time.Duration], who, than string) []evidence {
	by := offset.Value.Round(time.Second)
	switch {
	case by > clockTolerance:
		return see(fmt.Sprintf("%s is %s ahead of %s", who, by, than))
	case by < -clockTolerance:
		return see(fmt.Sprintf("%s is %s behind %s", who, -by, than))
	default:
		return nil
	}
}
