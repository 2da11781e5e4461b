package store

import "broker/core/internal/record"

// The store keeps what the machine decides; the types live where the machine can see them without seeing Pebble.
type (
	// Batch is what one commit makes durable.
	CommitBatch = record.CommitBatch
	// Change is the last word of a batch about one job.
	Change = record.Change
	// Parts says which keys of a job the store holds.
	Parts = record.Parts
	// Status is the part of a job that changes.
	Status = record.Status
	// Record is what Scan finds of one job.
	Record = record.Record
)

// The keys of a job beside its own.
const (
	HasStatus  = record.HasStatus
	HasBody    = record.HasBody
	HasFailure = record.HasFailure
	HasOutcome = record.HasOutcome
)
