// Package telemetry measures a machine and makes no decisions. It counts and measures activity in queues (Meters),
// counts the finishes of the last days (History), and remembers the jobs that ended most recently (Finished). The
// machine calls it under the engine's lock, and stores its entries in its own batches. It knows the machine only as its
// Host.
package telemetry
