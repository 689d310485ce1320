//go:build !race

package boundedhttp

const raceDetected = false
