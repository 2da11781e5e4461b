// Package cron submits jobs whenever their time comes: the cron entries of the configuration. It is a client of the broker
// like any other, without a protocol.
//
// # Once
//
// Each entry has a position: the newest instant that has been dealt with. It is stored with the job that was due then, in
// the same commit, so that neither a crash nor a restart submits a job for the same instant twice, and no job is left out
// because its position was stored without it. Entries are known over restarts by their schedule and their job.
//
// # What was missed
//
// A run that came due at most [Grace] ago is made up for, so that a restart across the full minute leaves nothing out. If
// several were missed, only the newest counts. Older ones are left out and reported: after a night without the broker there
// is no flood of reports. Faktory's author does the same in his periodic jobs: no backfill.
//
// # Refusals
//
// A full queue or disk is tried again until Grace has passed. A job that is refused because the one before still holds its
// unique lock is not: that is what the lock is for.
package cron
