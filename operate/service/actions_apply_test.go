package service

import "testing"

// A commit that changes jobs with large bodies keeps all of them in memory.
func TestPagesOfAnActionAreBoundedByTheBodiesThatItReads(t *testing.T) {
	t.Parallel()
	jobs := make([]jobVersion, 1200)
	for i := range jobs {
		jobs[i] = jobVersion{seq: uint64(i), bytes: 1 << 20}
	}
	jobs[100].bytes = 100 << 20
	for action, most := range map[JobAction]int{
		ActionMove: 32, ActionPriority: 32, ActionRerun: 32, ActionDelete: bulkPage, ActionRetry: bulkPage,
	} {
		a, next := Action{Action: action}, uint64(0)
		for page := range a.pages(jobs) {
			bytes := 0
			for i := range page {
				if page[i].seq != next {
					t.Fatalf("%s: job %d comes for job %d", action, page[i].seq, next)
				}
				next++
				bytes += page[i].bytes
			}
			if len(page) > most || most < bulkPage && bytes > bulkBytes && len(page) > 1 {
				t.Errorf("%s: %d jobs with %d bytes", action, len(page), bytes)
			}
		}
		if next != uint64(len(jobs)) {
			t.Errorf("%s: %d jobs", action, next)
		}
	}
}
