package machine

import (
	"testing"
	"time"

	"broker/core"
)

// TestKeysOfAQueueAreCounted compares what ListLimits says about the keys of a queue with the jobs of the test.
func TestKeysOfAQueueAreCounted(t *testing.T) {
	t.Parallel()
	l := emptyLibrary(t, Options{DefaultLease: time.Hour})
	keys := func() map[string]core.KeyUse {
		byName := map[string]core.KeyUse{}
		for _, k := range l.do(&core.ListLimits{Queue: "q", WithKeys: true}).Keys {
			byName[k.Name] = k
		}
		return byName
	}
	push := func(key string, n int) {
		for range n {
			l.do(&core.Submit{Job: &core.Job{Queue: "q", Tags: []string{"shop:" + key}}})
		}
	}
	push("a", 20)
	if len(keys()) != 0 {
		t.Error("a queue without keys lists ", keys())
	}
	l.do(&core.ShareQueue{Sharing: core.Sharing{
		Queue: "q", Key: core.JobKey{Kind: core.KeyTag, Tag: "shop"}, Fair: true,
	}})
	l.now = l.now.Add(10 * time.Second)
	push("b", 5)
	l.do(&core.Submit{Job: &core.Job{Queue: "q"}})
	for range 12 { // six turns of a, five of b, and the job without a key
		l.do(&core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w"})
	}
	l.now = l.now.Add(20 * time.Second)
	want := map[string]core.KeyUse{
		"a": {Name: "a", Ready: 14, Leased: 6, OldestAge: 30 * time.Second, Rate: 6. / 60},
		"b": {Name: "b", Leased: 5, Rate: 5. / 60},
		"":  {Leased: 1, Rate: 1. / 60},
	}
	compare := func(when string) {
		t.Helper()
		have := keys()
		for name, k := range want {
			if have[name] != k {
				t.Errorf("%s: key %q has %+v, want %+v", when, name, have[name], k)
			}
		}
	}
	compare("after leases")
	l.do(&core.PutLimit{Limit: core.Limit{
		Selector: core.InQueue("q", core.ScopeKey, "a"), Throttle: core.Throttle{Leased: 1},
	}})
	compare("with a limit, which makes new lanes")
	l.now = l.now.Add(70 * time.Second)
	want["a"] = core.KeyUse{Name: "a", Ready: 14, Leased: 6, OldestAge: 100 * time.Second}
	want["b"], want[""] = core.KeyUse{Name: "b", Leased: 5}, core.KeyUse{Leased: 1}
	compare("a minute later")
	if err := l.m.Check(); err != nil {
		t.Error(err)
	}
}
