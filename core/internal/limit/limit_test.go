package limit

import (
	"errors"
	"testing"
	"time"

	"broker/core"
)

func TestLimitOfQueueHoldsForAllWorkers(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.limit(core.Limit{Selector: core.InQueue("q", core.ScopeQueue, ""), Throttle: core.Throttle{Leased: 2}})
	f.submit("q", "q", "q", "other")
	f.want("q", 1, 1, 2)
	f.want("q", 2)
	f.want("other", 2, 4)
	f.finish(1)
	if !f.offered["q"] {
		t.Error("a place became free, and the queue is not offered")
	}
	f.want("q", 2, 3)
}

func TestLimitOfWorkerLeavesJobsToOthers(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.limit(core.Limit{Selector: core.InQueue("q", core.ScopeQueue, ""), Throttle: core.Throttle{LeasedPerWorker: 1}})
	f.submit("q", "q", "q")
	f.want("q", 1, 1)
	f.want("q", 2, 2)
	f.want("q", 1)
	f.finish(1)
	f.want("q", 1, 3)
}

func TestLimitOfTypeLetsOtherTypesPass(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.limit(core.Limit{Selector: core.InQueue("q", core.ScopeType, "slow"), Throttle: core.Throttle{Leased: 1}})
	f.submit("q type=slow", "q type=slow", "q type=fast", "q type=fast")
	f.want("q", 1, 1, 3, 4)
	f.finish(1)
	f.want("q", 1, 2)
}

func TestLimitOfEachKeyHoldsForKeysSeparately(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.share(core.Sharing{Queue: "q", Key: core.JobKey{Kind: core.KeyTag, Tag: "customer"}})
	f.limit(core.Limit{Selector: core.InQueue("q", core.ScopeKey, ""), Throttle: core.Throttle{Leased: 1}})
	f.limit(core.Limit{Selector: core.InQueue("q", core.ScopeKey, "big"), Throttle: core.Throttle{Leased: 2}})
	f.submit("q tag=customer:a", "q tag=customer:a", "q tag=customer:big", "q tag=customer:big", "q tag=customer:big",
		"q")
	f.want("q", 1, 1, 3, 4, 6)
	f.finish(1, 3)
	f.want("q", 1, 2, 5)
}

func TestLimitAppliesToExistingJobs(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.submit("q type=slow", "q type=slow", "q type=slow", "q type=slow")
	f.next("q", 1)
	f.limit(core.Limit{Selector: core.InQueue("q", core.ScopeType, ""), Throttle: core.Throttle{Leased: 2}})
	f.advance(time.Second) // the jobs are sorted anew
	f.want("q", 1, 2)
	if _, err := f.rules.Remove(core.LimitID{Queue: "q", Scope: core.ScopeType}, false); err != nil {
		t.Fatal(err)
	}
	f.advance(time.Second)
	f.want("q", 1, 3, 4)
}

func TestRateAllowsLeasesAsTimePasses(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.limit(core.Limit{Selector: core.InQueue("q", core.ScopeQueue, ""), Throttle: core.Throttle{Rate: 1, Burst: 2}})
	f.submit("q", "q", "q", "q", "q", "q")
	f.want("q", 1, 1, 2)
	f.advance(999 * time.Millisecond)
	f.want("q", 1)
	clear(f.offered)
	f.advance(time.Millisecond)
	if !f.offered["q"] {
		t.Error("the rate has room, and the queue is not offered")
	}
	f.want("q", 1, 3)
	f.advance(time.Minute)
	f.want("q", 1, 4, 5)
}

func TestSlotBecomesFreeWhileLeaseContinues(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.limit(core.Limit{
		Selector: core.InQueue("q", core.ScopeQueue, ""), Throttle: core.Throttle{Leased: 1, SlotFor: time.Minute},
	})
	f.limit(core.Limit{
		Selector: core.InQueue("q", core.ScopeType, "q"),
		Throttle: core.Throttle{Leased: 1, SlotFor: 2 * time.Minute},
	})
	f.submit("q", "q", "q type=other")
	f.want("q", 1, 1)
	f.advance(time.Minute)
	f.want("q", 1, 3)
	f.advance(time.Minute)
	f.want("q", 1, 2)
	f.finish(1, 2, 3)
}

func TestCostCountsAsSeveralLeases(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.limit(core.Limit{Selector: core.InQueue("q", core.ScopeQueue, ""), Throttle: core.Throttle{Leased: 4}})
	f.submit("q cost=3", "q cost=2", "q")
	f.want("q", 1, 1)
	f.finish(1)
	f.want("q", 1, 2, 3)
}

func TestFairQueueTakesKeysInTurn(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.share(core.Sharing{
		Queue: "q", Key: core.JobKey{Kind: core.KeyTag, Tag: "c"}, Fair: true, Weights: map[string]uint32{"b": 2},
	})
	f.submit("q tag=c:a", "q tag=c:a", "q tag=c:a", "q tag=c:b", "q tag=c:b", "q tag=c:b", "q tag=c:b")
	turns := map[string]int{}
	for range 6 {
		h := f.next("q", 1)
		if h == 0 {
			t.Fatal("a fair queue hands out nothing")
		}
		turns[f.table.TagKey(h, "c")]++
	}
	if turns["a"] != 2 || turns["b"] != 4 {
		t.Errorf("of 6 jobs %v, and b has twice the weight of a", turns)
	}
	f.check()
}

func TestOrderedQueueHandsOutOneJobOfAKeyAtATime(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.share(core.Sharing{Queue: "q", Key: core.JobKey{Kind: core.KeyTag, Tag: "c"}, Ordered: true})
	f.submit("q tag=c:a", "q tag=c:a", "q tag=c:b", "q", "q")
	f.want("q", 1, 1, 3, 4, 5)
	h := f.table.Handle(1)
	f.giveUp(h)
	f.ready(h)
	f.want("q", 2, 1)
	f.finish(1)
	f.want("q", 1, 2)
}

func TestSharedLimitHoldsForQueuesTogether(t *testing.T) {
	t.Parallel()
	f := setup(t)
	if _, err := f.rules.Put(&core.Limit{
		Name: "api", Selector: core.Selector{Queues: []string{"q"}, Types: []string{"call"}},
		Throttle: core.Throttle{Leased: 2},
	}); err != nil {
		t.Fatal(err)
	}
	f.submit("q", "q", "other type=call", "other type=free", "other type=call")
	f.advance(time.Second)
	f.want("q", 1, 1, 2)
	f.want("other", 1, 4)
	clear(f.offered)
	f.finish(1)
	if !f.offered["other"] {
		t.Error("a place became free, and the other queue is not offered")
	}
	f.want("other", 2, 3)
	if _, err := f.rules.Remove(core.LimitID{Name: "api"}, false); err != nil {
		t.Fatal(err)
	}
	f.advance(time.Second)
	f.want("other", 2, 5)
}

func TestInvalidLimitsAreRefused(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.limit(core.Limit{
		Selector: core.InQueue("file", core.ScopeQueue, ""), FromConfig: true, Throttle: core.Throttle{Leased: 1},
	})
	for _, test := range []struct {
		name  string
		limit core.Limit
		want  error
	}{
		{"whole queue", core.Limit{
			Selector: core.InQueue("q", core.ScopeQueue, ""), Throttle: core.Throttle{Leased: 1},
		}, nil},
		{"no queue", core.Limit{
			Selector: core.InQueue("", core.ScopeQueue, ""), Throttle: core.Throttle{Leased: 1},
		}, core.ErrInvalid},
		{"nothing is limited", core.Limit{Selector: core.InQueue("q", core.ScopeQueue, "")}, core.ErrInvalid},
		{"a type without limit", core.Limit{Selector: core.InQueue("q", core.ScopeType, "T")}, nil},
		{
			"unknown scope",
			core.Limit{Selector: core.InQueue("q", core.ScopeKey+1, ""), Throttle: core.Throttle{Leased: 1}},
			core.ErrInvalid,
		},
		{
			"name of the whole queue",
			core.Limit{Selector: core.InQueue("q", core.ScopeQueue, "x"), Throttle: core.Throttle{Leased: 1}},
			core.ErrInvalid,
		},
		{"burst without rate", core.Limit{
			Selector: core.InQueue("q", core.ScopeQueue, ""), Throttle: core.Throttle{Burst: 2},
		}, core.ErrInvalid},
		{
			"rate too high",
			core.Limit{
				Selector: core.InQueue("q", core.ScopeQueue, ""), Throttle: core.Throttle{Rate: 2 * core.MaxRate},
			},
			core.ErrInvalid,
		},
		{
			"negative time",
			core.Limit{
				Selector: core.InQueue("q", core.ScopeQueue, ""), Throttle: core.Throttle{Leased: 1, SlotFor: -1},
			},
			core.ErrInvalid,
		},
		{
			"limit of the settings",
			core.Limit{Selector: core.InQueue("file", core.ScopeQueue, ""), Throttle: core.Throttle{Leased: 2}},
			core.ErrConfigured,
		},
		{"new settings", core.Limit{
			Selector: core.InQueue("file", core.ScopeQueue, ""), FromConfig: true,
			Throttle: core.Throttle{Leased: 2},
		}, nil},
	} {
		if err := f.rules.refusal(&test.limit); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
	if _, err := f.rules.Remove(core.LimitID{Queue: "file"}, false); !errors.Is(err, core.ErrConfigured) {
		t.Errorf("a limit of the settings is removed: %v", err)
	}
	if _, err := f.rules.Remove(core.LimitID{Queue: "q"}, false); !errors.Is(err, core.ErrNoLimit) {
		t.Errorf("a limit that is not there is removed: %v", err)
	}
}

func TestInvalidSharingsAreRefused(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tag := core.JobKey{Kind: core.KeyTag, Tag: "c"}
	for _, test := range []struct {
		name    string
		sharing core.Sharing
		want    error
	}{
		{"by tag", core.Sharing{Queue: "q", Key: tag, Fair: true, Weights: map[string]uint32{"a": 2}}, nil},
		{"no queue", core.Sharing{Key: tag}, core.ErrInvalid},
		{"tag without name", core.Sharing{Queue: "q", Key: core.JobKey{Kind: core.KeyTag}}, core.ErrInvalid},
		{
			"name with a colon",
			core.Sharing{Queue: "q", Key: core.JobKey{Kind: core.KeyTag, Tag: "a:b"}},
			core.ErrInvalid,
		},
		{"fair without key", core.Sharing{Queue: "q", Fair: true}, core.ErrInvalid},
		{
			"weights without fairness",
			core.Sharing{Queue: "q", Key: tag, Weights: map[string]uint32{"a": 2}},
			core.ErrInvalid,
		},
		{
			"weight of zero",
			core.Sharing{Queue: "q", Key: tag, Fair: true, Weights: map[string]uint32{"a": 0}},
			core.ErrInvalid,
		},
		{"ordered and fair", core.Sharing{Queue: "q", Key: tag, Fair: true, Ordered: true}, core.ErrInvalid},
		{
			"ordered by unique key",
			core.Sharing{Queue: "q", Key: core.JobKey{Kind: core.KeyUnique}, Ordered: true},
			core.ErrInvalid,
		},
	} {
		if _, err := f.rules.Share(&test.sharing); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
}
