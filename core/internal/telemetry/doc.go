// Package telemetry watches a machine and decides nothing: it counts and measures what happens in the queues (Meters), counts the
// finishes of the last days (History), and remembers the jobs that ended last (Finished). The machine calls it under the engine's
// lock, and stores its entries with its own batches. It knows a machine only as its Host.
package telemetry
