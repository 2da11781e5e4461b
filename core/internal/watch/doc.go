// Package watch knows which clients wait for which jobs, in lists of both, and how many of them a job runs for. It knows clients by their
// slots. What a client is told, and what becomes of a job that nobody waits for any more, the machine decides.
package watch
