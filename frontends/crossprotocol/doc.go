// Package crossprotocol contains tests only: what happens to a job that is submitted with one protocol and processed
// with another. The tests run all front-ends and the HTTP API on one real broker with a fake clock, so that long waits
// cost no time. They record the results in the tables of docs/sharing.md. After a change run them with -update and
// review the diff.
package crossprotocol
