package machine

import (
	"testing"

	"broker/core"
)

// TestDamagedJobIsBuriedNotEnded: even if its policy would remove it after its last failure, it can be inspected and
// put back.
func TestDamagedJobIsBuriedNotEnded(t *testing.T) {
	t.Parallel()
	l := newLimited()
	seq := l.do(&core.Submit{Job: &core.Job{Queue: "q", Exhausted: core.ExhaustedFinish}}).Seq
	if !l.Quarantine(2, seq, "the disk has lost it") {
		t.Fatal("not buried")
	}
	if i := l.do(&core.Inspect{Ref: core.Ref{Seq: seq}}).Info; i == nil || i.State != core.Dead {
		t.Errorf("the job is %+v", i)
	}
	if jobs := l.do(&core.ListFinished{}).Finished; len(jobs) != 0 {
		t.Errorf("the job is listed as finished: %+v", jobs)
	}
}
