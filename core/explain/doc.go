// Package explain says what was decided about a job and why, from the entries of an archive: what happened in which order, who waited, which
// limits were in force. It reads records and knows the order in which a queue hands out its jobs; it runs no machine.
//
// An entry is the net effect of a commit. What came and went within one commit is not in it, nor is a lease that a connection guards
// (a Gearman worker's): the job then goes from ready to its end.
package explain
