//go:build nightly

package harness

// Nightly is true in the tests of make nightly. They alone bound how long something takes.
const Nightly = true
