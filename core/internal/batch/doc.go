// Package batch knows the batches of jobs: how many of their members and child batches have been executed and are done, and which callback
// is due. What cannot be derived from the members after a restart is stored with the batch.
//
// The machine tells it of members that join, fail and end, and of callbacks that end. It releases a callback by a function that the
// machine gives it. It knows the jobs by their table.
package batch
