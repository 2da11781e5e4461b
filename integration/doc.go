// Package integration tests the built broker over real sockets, with third-party clients where possible, and with
// strict clients of our own for Workq and for what those clients cannot do.
//
// Some tests concern one protocol (gearman_*, faktory_*, workq_*), some jobs that cross from one protocol to another
// (cross_*), and some what must survive a kill (crash_*). Package harness starts and stops the broker; it shares
// package server with the benchmark program in bench.
package integration
