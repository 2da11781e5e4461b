package explain

import (
	"fmt"
	"testing"

	"broker/core"
	"broker/core/internal/record"
)

// A job is passed by as many jobs of its queue as are behind it. The looks grow with their number, and
// not with its square.
func TestManyOvertakersTakeFewLooks(t *testing.T) {
	t.Parallel()
	const jobs, leased = 20_000, 20
	for name, set := range map[string]rules{
		"limits": {limits: []core.Limit{
			{Selector: core.InQueue("q", core.ScopeQueue, ""), Throttle: core.Throttle{Leased: jobs}},
			{Selector: core.InQueue("q", core.ScopeType, ""), Throttle: core.Throttle{LeasedPerWorker: jobs}},
		}},
		"order": {sharing: core.Sharing{Queue: "q", Key: core.JobKey{Kind: core.KeyTag, Tag: "tenant"}, Ordered: true}},
		"none":  {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.settings = map[string]rules{"q": set}
			w.shared["s"] = &shared{Limit: core.Limit{Name: "s", Throttle: core.Throttle{Leased: jobs}}}
			for seq := uint64(1); seq <= jobs; seq++ {
				st := &record.Status{State: core.Ready}
				if seq%(jobs/leased) == 0 {
					st.State = core.Leased
				}
				w.put(seq, &core.Job{Seq: seq, Queue: "q", Tags: []string{fmt.Sprint("tenant:", seq)}}, st)
			}
			var p overtakers
			for seq := uint64(2); seq <= jobs; seq++ {
				p.add(w, w.jobs[seq], w.jobs[1])
			}
			if p.later != jobs-1 || len(p.why) != 1 {
				t.Errorf("%d jobs passed it, because %q", p.later, p.why)
			}
			if most := maxReasons * (jobs + 3*leased); w.looked > most || name == "none" && w.looked > 0 {
				t.Errorf("%d jobs were looked at, at most %d are allowed", w.looked, most)
			}
		})
	}
}
