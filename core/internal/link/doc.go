// Package link knows which jobs wait for which: dependencies and parents. It says whether a new dependency would close a circle, ends the
// waiting of those that wait for a job that has ended, and notes those that wait for one that ends without being done.
//
// It knows the jobs by their table. The machine tells it of jobs that join and end, unblocks and removes jobs for it, and decides about
// those that cannot go on.
package link
