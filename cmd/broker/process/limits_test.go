package process

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"broker/config"
	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
)

func TestLimitsFollowTheConfiguration(t *testing.T) {
	t.Parallel()
	e, err := engine.Open(engine.Options{
		Dir: "data", FS: coretest.MemoryFS(), Clock: coretest.NewClock(), Seed: 1, ManualTimers: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Shutdown() }) // nothing is looked at afterwards
	var log bytes.Buffer
	p := &term{Process: &Process{log: zerolog.New(&log)}, engine: e}
	want := func(want ...string) {
		t.Helper()
		a := core.DoOnce(e, core.Internal, &core.ListLimits{})[0].Answer
		var got []string
		for _, l := range a.Limits {
			got = append(got,
				fmt.Sprintf("%s/%d/%s %d %v %d %v", l.Queues[0], l.Scope, l.Of, l.Leased, l.Rate, l.Burst,
					l.FromConfig))
		}
		for _, s := range a.Sharings {
			got = append(got, fmt.Sprintf("%s %v %v %v %v%s", s.Queue, s.Key, s.Fair, s.Weights, s.FromConfig,
				map[bool]string{true: " ordered"}[s.Ordered]))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	core.DoOnce(e, core.Internal,
		&core.PutLimit{Limit: core.Limit{
			Selector: core.InQueue("other", core.ScopeQueue, ""), Throttle: core.Throttle{Leased: 9},
		}})
	first := settingsOf(t, &config.Config{
		Throttles: map[string]config.Throttle{"q": {Concurrency: 2, Rate: 0.5, Burst: 3}},
		QueueLimits: []config.QueueLimit{
			{Queue: "q", Type: config.Each, Throttle: config.Throttle{Concurrency: 1}},
			{Queue: "q", Key: "acme", Throttle: config.Throttle{Concurrency: 5}},
		},
		Sharings: []config.Sharing{{Queue: "q", Key: "tag:tenant", Fair: true, Weights: map[string]int{"acme": 2}}},
	})
	p.applyLimits(&Settings{}, first)
	want("other/0/ 9 0 0 false", "q/0/ 2 0.5 3 true", "q/1/ 1 0 0 true", "q/2/acme 5 0 0 true",
		"q {1 tenant} true map[acme:2] true")
	log.Reset()
	p.applyLimits(first, first)
	if log.Len() != 0 {
		t.Errorf("nothing has changed, log: %s", log.String())
	}
	second := settingsOf(t, &config.Config{Throttles: map[string]config.Throttle{"q": {Concurrency: 3}}})
	p.applyLimits(first, second)
	want("other/0/ 9 0 0 false", "q/0/ 3 0 0 true")
	p.applyLimits(second, &Settings{})
	want("other/0/ 9 0 0 false")
}
