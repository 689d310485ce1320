package health

import "time"

const (
	headerTimeout   = 5 * time.Second
	requestTimeout  = 10 * time.Second
	idleTimeout     = 90 * time.Second
	shutdownTimeout = time.Second

	// firstPause is the pause after the first check; it doubles up to the others, so that a process is ready soon after its start.
	firstPause = 50 * time.Millisecond
	// readyPause is the pause after a check that succeeded: kubelets ask as often, and each check may be a call of the API
	// server, for each replica of each project.
	readyPause = 5 * time.Second
	// failedPause is the pause after a check that failed.
	failedPause = time.Second
	// checkTimeout bounds a check.
	checkTimeout = time.Second
	// maxResultAge is how old the result of a check may be that still counts.
	maxResultAge = 10 * time.Second

	// maxScrapes bounds the answers of /metrics that are made for one client each: each holds all metrics, and a compressor.
	maxScrapes = 4
	// snapshotPeriod is how long one snapshot is given to all other clients. With requestTimeout it bounds how many snapshots
	// slow readers can make the process hold.
	snapshotPeriod = 2 * time.Second
	// maxSnapshotAge is how old a snapshot may be that is given away while the next one is made.
	maxSnapshotAge = 15 * time.Second
	// maxSnapshotBytes bounds a snapshot.
	maxSnapshotBytes = 8 << 20
)
