package machine

import (
	"fmt"
	"testing"
	"time"

	"broker/core"
	"broker/core/internal/limit"
)

// TestUsesOfALimitAreBounded lists a limit with more keys than a reply holds: it shows the busiest keys.
func TestUsesOfALimitAreBounded(t *testing.T) {
	t.Parallel()
	l := emptyLibrary(t, Options{})
	must := func(op core.Op) core.Reply {
		t.Helper()
		r := l.do(op)
		if r.Kind == core.Failed {
			t.Fatalf("%T: %v", op, r.Err)
		}
		return r
	}
	must(&core.PutLimit{Limit: core.Limit{
		Selector: core.InQueue("q", core.ScopeKey, ""), Throttle: core.Throttle{Leased: 1},
	}})
	must(&core.ShareQueue{Sharing: core.Sharing{Queue: "q", Key: core.JobKey{Kind: core.KeyTag, Tag: "shop"}}})
	push := func(key string, priority int64) {
		must(&core.Submit{Job: &core.Job{Queue: "q", Priority: priority, Tags: []string{"shop:" + key}}})
	}
	const keys = core.MaxLimitUses + 5
	for i := range keys {
		push(fmt.Sprintf("%05d", i), 0)
	}
	push("zz-taken", 1)
	push("zz-waits", -1)
	push("zz-waits", -1)
	must(&core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w"})
	uses := must(&core.ListLimits{Queue: "q"}).Limits[0].Uses
	last, before := uses[len(uses)-1], uses[len(uses)-2]
	if len(uses) != core.MaxLimitUses || uses[0].Name != "00000" || last.Name != "zz-waits" || last.Ready != 2 {
		t.Errorf("%d uses, from %+v to %+v", len(uses), uses[0], last)
	}
	if before.Name != "zz-taken" || before.Taken != 1 || len(before.Slots) != 1 || before.Slots[0].Worker != "w" {
		t.Errorf("the key with a slot: %+v", before)
	}
}

// TestUsesOfALimitExamineFewKeys lists a limit with more keys than a list examines.
func TestUsesOfALimitExamineFewKeys(t *testing.T) {
	t.Parallel()
	l := newLimited()
	l.do(&core.PutLimit{Limit: core.Limit{
		Selector: core.InQueue("q", core.ScopeKey, ""), Throttle: core.Throttle{Leased: 1},
	}})
	l.do(&core.ShareQueue{Sharing: core.Sharing{Queue: "q", Key: core.JobKey{Kind: core.KeyTag, Tag: "shop"}}})
	for i := range 2 * limit.MaxLooks {
		l.submitted(core.Job{Tags: []string{fmt.Sprint("shop:", i)}})
	}
	l.do(&core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w", LeaseFor: time.Hour})
	r := l.do(&core.ListLimits{Queue: "q", WithKeys: true})
	if len(r.Limits[0].Uses) != core.MaxLimitUses || len(r.Keys) != core.MaxLimitUses {
		t.Errorf("%d uses, %d keys", len(r.Limits[0].Uses), len(r.Keys))
	}
	if l.table.Touched < 3*limit.MaxLooks || l.table.Touched > 3*limit.MaxLooks+10 {
		t.Errorf("%d were touched", l.table.Touched)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}
