// Package sim simulates a whole engine with seeded clients, which behave like the clients of all protocols. The disk
// crashes, fails (as when it is full) and is slow; the clock is set forward and back. The simulation compares what the
// clients see with a model of what was acknowledged to them:
//
//   - nothing acknowledged is lost, whatever the disk has lost;
//   - no job whose finish was acknowledged comes back;
//   - no job is handed out while it is leased, or before its dependencies are done, or as a batch's callback before the
//     batch allows it;
//   - a client that waits for an outcome gets it once, and no later than its deadline;
//   - lists, rows and counters agree;
//   - recovery is idempotent, and the index is sound after every step.
//
// One seed determines everything. The choices of a step depend only on the seed and the number of the step, so steps
// can be left out: a failure is replayed with fewer and fewer steps, and the shortest history that still fails is
// printed.
//
// It is test support: no package of the program imports it, which the linter's rule test-support enforces. Its files do
// not end in _test.go, so that the linter requires a case for every new operation here, as it does in the machine.
package sim
