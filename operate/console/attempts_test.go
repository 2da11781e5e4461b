package console

import (
	"testing"
	"time"

	"broker/operate/service"
)

// TestAttemptsOfAJobComeFromItsTimeline: with length, worker and error, the newest first, and the trace of the last
// failure.
func TestAttemptsOfAJobComeFromItsTimeline(t *testing.T) {
	t.Parallel()
	at := func(s int) *time.Time {
		x := time.Date(2030, 1, 1, 3, 0, s, 0, time.UTC)
		return &x
	}
	entry := func(n uint32, s int, kind, worker, detail string) service.TimelineEntry {
		return service.TimelineEntry{Number: n, At: at(s), Kind: kind, Worker: worker, Detail: detail}
	}
	j := service.Job{
		State: "leased", Attempts: 3, Failure: &service.Failure{Backtrace: []string{"main.go:7"}},
		Timeline: []service.TimelineEntry{
			entry(0, 0, "submitted", "", ""), entry(1, 1, "leased", "w1", ""), entry(2, 4, "failed", "w1", "Timeout"),
			entry(3, 4, "retrying", "", ""),
			entry(4, 9, "leased", "w2", ""), entry(5, 10, "released", "w2", ""), entry(6, 11, "leased", anonymous, ""),
		},
	}
	got := attemptsOf(&j)
	if len(got) != 3 {
		t.Fatalf("attempts: %+v", got)
	}
	for i, want := range []attempt{
		{Number: 3, Outcome: "running"},
		{Number: 2, Outcome: "given back", Worker: "w2", Length: "1 s"},
		{Number: 1, Outcome: "failed", Worker: "w1", Length: "3 s", Error: "Timeout"},
	} {
		if a := got[i]; a.Number != want.Number || a.Outcome != want.Outcome || a.Worker != want.Worker ||
			a.Length != want.Length || a.Error != want.Error {
			t.Errorf("attempt %d is %+v, want %+v", i, a, want)
		}
	}
	if len(got[2].Trace) != 1 || got[0].Trace != nil {
		t.Errorf("the trace is not with the attempt that failed: %+v", got)
	}
	j.Timeline = append(j.Timeline[:1:1], entry(40, 50, "leased", "w9", ""), entry(41, 51, "failed", "w9", "Late"))
	j.State, j.Attempts = "retrying", 21
	if got = attemptsOf(&j); len(got) != 1 || got[0].Number != 21 {
		t.Errorf("after entries that are not kept, the attempts are %+v", got)
	}
}
