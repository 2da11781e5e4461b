// Package batch manages the batches of jobs: how many of their members and child batches have been executed and are
// done, and which callback is due. Data that cannot be derived from the members after a restart is stored with the
// batch.
//
// The machine reports members that join, fail and end, and callbacks that end. Package batch releases a callback with a
// function of the machine. It knows the jobs by their table.
package batch
