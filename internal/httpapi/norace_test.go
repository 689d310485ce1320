//go:build !race

package httpapi

const raceDetected = false
