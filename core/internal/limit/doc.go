// Package limit decides which ready jobs of a queue may be handed out, and to which clients: by limits of queues, types
// and keys, by shared limits, by fair turns between keys, and by the order within keys. It counts leases for each
// limit, stores how much of each rate is used, and sorts jobs again when limits change.
//
// It knows the jobs by their table. It does not change jobs and does not know clients: the machine reports leases to it
// and asks it for the next job. Host is what it needs from the machine.
//
// A queue without limits only pays for nil checks. A Queue is a table.Queue with its limits.
package limit
