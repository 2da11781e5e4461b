//go:build race

package frontendtest

// detectorAllocs are those a request that the race detector may cause: it makes pools forget at random.
const detectorAllocs = 1.5
