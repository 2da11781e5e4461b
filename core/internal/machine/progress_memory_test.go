package machine

import (
	"runtime"
	"strings"
	"testing"

	"broker/core"
)

// TestStoredOutcomesOfJobsWithProgressLeaveMemory commits large outcomes and failures of jobs that have reported
// progress.
func TestStoredOutcomesOfJobsWithProgressLeaveMemory(t *testing.T) { // it looks at all memory of the process
	const jobs, size = 100, 1 << 20
	for name, end := range map[string]func(core.Ref) core.Op{
		"outcomes": func(ref core.Ref) core.Op {
			return &core.Complete{Ref: ref, Authority: core.ByLeased, Result: make([]byte, size)}
		},
		"failures": func(ref core.Ref) core.Op {
			return &core.Fail{
				Ref: ref, Authority: core.ByLeased, Failure: &core.Failure{Message: strings.Repeat("x", size)},
			}
		},
	} {
		l := newLimited()
		var s Sealed
		before := heap()
		for range jobs {
			ref := l.leased(true)
			l.do(&core.Report{Ref: ref, Authority: core.ByLeased, Progress: core.Progress{Num: 1, Den: 2}})
			if r := l.do(end(ref)); r.Kind != core.Accepted {
				t.Fatalf("%s: %+v", name, r)
			}
		}
		if held := heap() - before; held < jobs*size {
			t.Errorf("%s: %d bytes are held before the commit, which are too few for this test", name, held)
		}
		l.Seal(&s)
		l.Committed(&s)
		s = Sealed{}
		if held := heap() - before; held > jobs*size/10 {
			t.Errorf("%s: %d bytes are held after the commit", name, held)
		}
		runtime.KeepAlive(l)
	}
}
