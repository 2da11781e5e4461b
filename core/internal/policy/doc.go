// Package policy manages the policies of queues and types, which set values that jobs do not set themselves. They are
// looked up when they are needed, so they take no memory per job. The package uses the table for the time and for
// stored entries, and makes no decisions.
package policy
