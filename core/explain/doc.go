// Package explain reports what was decided about a job and why, from the entries of an archive: what happened in which
// order, which jobs waited, and which limits applied. It reads records and knows in which order a queue hands out its
// jobs; it does not run a machine.
//
// An entry is the net effect of a commit. It does not contain jobs that were submitted and removed within one commit,
// nor leases held by a connection (as of Gearman workers): such a job goes from ready directly to its end.
package explain
