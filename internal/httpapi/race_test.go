//go:build race

package httpapi

const raceDetected = true
