// Package joblog appends lines to the logs of jobs. It knows the last chunk of each log that is being written, and forgets it once it is on
// disk and the job is not leased any more. It writes chunks as documents of the table; the machine has them read.
package joblog
