// Package integration drives the built broker over real sockets, as its users do: with the client programs of others
// where there are any, and with strict ones of our own for Workq and for what the published ones cannot be made to do.
//
// The tests start with what one protocol owes its clients (gearman_*, faktory_*, workq_*), go on to jobs that cross from
// one protocol to another (cross_*), and end with what must survive a kill (crash_*). Package harness starts and stops
// the broker; package server, below it, is shared with the load program in bench.
package integration
