// Package sim runs a whole engine under seeded clients of all protocols' kinds on a disk that crashes, fails (as a full one
// does) and is slow, with a clock that is set forward and back, and compares what the clients see with a model of what they were promised:
//
//   - nothing acknowledged is lost, whatever the disk forgot;
//   - nothing whose finish was acknowledged comes back;
//   - no job is handed out while somebody's lease on it lasts, before those it waits for, or as a batch's callback before
//     its time;
//   - a client that waits for an outcome gets it once, and no later than its deadline;
//   - lists, rows and counters agree;
//   - recovery is idempotent, and the index is sound after every step.
//
// One seed fixes everything. A step's choices follow from the seed and its number alone, so that steps can be left out:
// a failure is played again with fewer and fewer of them, and the shortest history that still fails is printed.
//
// It is test support: no package of the program imports it, which the linter's rule test-support enforces. Its files do not end in
// _test.go, so that the linter asks it for every new operation as it asks the machine.
package sim
