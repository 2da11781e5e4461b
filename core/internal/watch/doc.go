// Package watch knows which clients wait for which jobs, in a list for each job and each client, and how many clients
// keep an ephemeral job alive. It knows clients by their slots. The machine decides about replies, and about jobs that
// no client waits for any more.
package watch
