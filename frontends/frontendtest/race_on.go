//go:build race

package frontendtest

// raceDetectorAllocs are the additional allocations of a request under the race detector, which drops pooled values at
// random.
const raceDetectorAllocs = 1.5
