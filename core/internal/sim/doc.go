// Package sim runs a whole engine under seeded clients of all protocols' kinds on a disk that crashes, and compares what
// they see with a model of what they were promised:
//
//   - nothing acknowledged is lost, whatever the disk forgot;
//   - nothing whose finish was acknowledged comes back;
//   - no job is handed out while somebody's lease on it lasts;
//   - recovery is idempotent, and the index is sound after every step.
//
// One seed fixes clients, clock, and crashes. A failure prints the seed and the last steps.
package sim
