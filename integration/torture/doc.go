// Package torture tests the built broker under adverse conditions: killed again and again under load on all protocols;
// with a full or read-only disk; with a wrong clock; with clients that flood it, do not read, or connect by the
// thousand. An independent ledger, which knows only what clients sent and received, accounts for every job.
//
// make test runs a short form. make torture runs everything: it kills the broker TORTURE_ROUNDS (100) times and limits
// memory and latency.
package torture
