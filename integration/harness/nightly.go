//go:build nightly

package harness

// Nightly is true in make nightly. Only there tests limit durations.
const Nightly = true
