//go:build !race

package frontendtest

// raceDetectorAllocs are the additional allocations of a request under the race detector.
const raceDetectorAllocs = 0
