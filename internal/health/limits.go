package health

import "time"

const (
	headerTimeout   = 5 * time.Second
	requestTimeout  = 10 * time.Second
	idleTimeout     = 90 * time.Second
	shutdownTimeout = time.Second

	// firstPause is the pause after the first check. It doubles up to the pauses below, so that a process is ready soon after its start.
	firstPause = 50 * time.Millisecond
	// readyPause is the pause after a successful check. Kubelets probe as often, and a check may be an API server request, for
	// each replica of each project.
	readyPause = 5 * time.Second
	// failedPause is the pause after a failed check.
	failedPause = time.Second
	// checkTimeout limits a check.
	checkTimeout = time.Second
	// maxResultAge is how long the result of a check is valid.
	maxResultAge = 10 * time.Second

	// maxScrapes limits the concurrent individual answers of /metrics: each holds all metrics and a compressor in memory.
	maxScrapes = 4
	// snapshotPeriod is how long all other clients share a snapshot. With requestTimeout, it limits how many snapshots slow
	// readers can keep in memory.
	snapshotPeriod = 2 * time.Second
	// maxSnapshotAge is the maximum age of a snapshot that is served while the next one is created.
	maxSnapshotAge = 15 * time.Second
	// maxSnapshotBytes limits the size of a snapshot.
	maxSnapshotBytes = 8 << 20
)
