// Package joblog appends lines to the logs of jobs. It keeps the last chunk of each log that is being written until the
// chunk is on disk and the job is no longer leased. It writes chunks as documents of the table; the machine supplies
// the chunks of former processes and leases.
package joblog
