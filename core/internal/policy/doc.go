// Package policy knows the policies of queues and types: what they say for jobs that do not say it themselves. They are looked up when
// they are needed, so that a job takes no memory for them. It has the table for the time and for what is stored, and decides nothing.
package policy
