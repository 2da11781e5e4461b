// Package schedule knows the schedules: when each is due next, which runs it has missed, and which of its jobs are waiting. It has the
// table for deadlines, for what is stored and for the states of jobs. It decides when a job is submitted; the machine, its Host, decides
// whether.
package schedule
