// Package crossprotocol holds no code but tests: what becomes of a job that one protocol brings and another one runs. They play
// all three front-ends on one real broker whose clock the test moves, so that a day of waiting costs nothing. What they
// see is written into docs/sharing.md, cell by cell; run them with -update after a change, and read what has changed.
package crossprotocol
