// Package link knows which jobs wait for which other jobs: dependencies and parents. It detects dependencies that would
// create a cycle. When a job ends, it releases the jobs that wait for it; when a job ends without being done, it
// records the jobs that wait for it.
//
// It knows the jobs by their table. The machine reports jobs that join and end, unblocks and removes jobs for it, and
// decides about jobs whose dependencies cannot be done.
package link
