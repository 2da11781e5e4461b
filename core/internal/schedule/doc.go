// Package schedule manages schedules: when each is due next, which runs it has missed, and which of its jobs are
// waiting. It uses the table for deadlines, stored entries and the states of jobs. It decides when a job is submitted;
// the machine, its Host, decides whether the job is admitted.
package schedule
