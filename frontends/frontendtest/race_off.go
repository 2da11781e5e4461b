//go:build !race

package frontendtest

// detectorAllocs are those a request that the race detector may cause.
const detectorAllocs = 0
