// Package limit says which ready jobs of a queue may be handed out, and to whom: by its limits, by those of types, keys and shared
// ones, by turns between keys, and by the order of keys. It counts the leases that take place in each of them, keeps what is used of
// rates over restarts, and sorts jobs anew when limits change.
//
// It knows the jobs by their table. It decides nothing about a job, and knows no client: the machine tells it of leases and asks it for
// the next job. What it asks of the machine is Host.
//
// A queue without limits pays for nil checks. A Queue is a table.Queue with what limits it.
package limit
