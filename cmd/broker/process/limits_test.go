package process

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"broker/config"
	"broker/core"
)

func TestLimitsFollowTheConfiguration(t *testing.T) {
	t.Parallel()
	p, log := newTerm(t)
	want := func(want ...string) {
		t.Helper()
		a := core.DoOnce(p.engine, core.Internal, &core.ListLimits{})[0].Answer
		var got []string
		for _, l := range a.Limits {
			got = append(got,
				fmt.Sprintf("%s/%d/%s %d %v %d %v", l.Queues[0], l.Scope, l.Of, l.Leased, l.Rate, l.Burst,
					l.FromConfig))
		}
		for _, s := range a.Sharings {
			text := fmt.Sprintf("%s %v %v %v %v", s.Queue, s.Key, s.Fair, s.Weights, s.FromConfig)
			if s.Ordered {
				text += " ordered"
			}
			got = append(got, text)
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	core.DoOnce(p.engine, core.Internal,
		&core.PutLimit{Limit: core.Limit{
			Selector: core.InQueue("other", core.ScopeQueue, ""), Throttle: core.Throttle{Leased: 9},
		}})
	first := settingsOf(t, &config.Config{
		Throttles: map[string][]byte{"q": []byte(`{"concurrency":2,"rate_per_s":0.5,"burst":3}`)},
		QueueLimits: []config.QueueLimit{
			{Queue: "q", Type: config.Each, Members: []byte(`{"concurrency":1}`)},
			{Queue: "q", Key: "acme", Members: []byte(`{"concurrency":5}`)},
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
	second := settingsOf(t, &config.Config{Throttles: map[string][]byte{"q": []byte(`{"concurrency":3}`)}})
	p.applyLimits(first, second)
	want("other/0/ 9 0 0 false", "q/0/ 3 0 0 true")
	p.applyLimits(second, &Settings{})
	want("other/0/ 9 0 0 false")
}

func TestLimitsOfTheFileAreChecked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[throttles]\nq = {slot_for_s = 60}":            "throttles.q: limits nothing",
		"[throttles]\nq = {colour = 60}":                "throttles.q.colour: a limit has no setting colour",
		"[throttles]\nq = {rate_per_s = -1}":            "throttles.q.rate_per_s: rate_per_s must be a number a second",
		"[throttles]\nq = {rate = \"x\"}":               "throttles.q.rate: rate_per_s must be a number a second",
		"[throttles]\nq = {rate_per_s = 0.000001}":      "throttles.q: a rate is between one a day and a million",
		"[throttles]\nq = {rate = 1, rate_per_s = 1}":   "throttles.q.rate_per_s: rate_per_s is there twice",
		"[throttles]\nq = {concurrency = 1, burst = 2}": "a burst needs a rate",
		"[throttles]\n\nq = {concurrency = -1}":         "line 3",
		"[[queue_limit]]\nqueue = \"q\"\ntype = \"*\"":  "queue_limit[0]: limits nothing",
	} {
		file := filepath.Join(t.TempDir(), "broker.toml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadSettings(config.Sources{File: file}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestOldNamesOfLimitsWork sets every setting that had another name, under both.
func TestOldNamesOfLimitsWork(t *testing.T) {
	t.Parallel()
	earlier := config.Config{
		Throttles:   map[string][]byte{"q": []byte(`{"worker":2,"timeout":1.5,"rate":3}`)},
		QueueLimits: []config.QueueLimit{{Queue: "q", Type: "*", Members: []byte(`{"worker":1}`)}},
	}
	now := config.Config{
		Throttles:   map[string][]byte{"q": []byte(`{"per_worker":2,"slot_for_s":1.5,"rate_per_s":3}`)},
		QueueLimits: []config.QueueLimit{{Queue: "q", Type: "*", Members: []byte(`{"per_worker":1}`)}},
	}
	was, is := settingsOf(t, &earlier), settingsOf(t, &now)
	if len(is.limits) != 2 || !reflect.DeepEqual(was.limits, is.limits) {
		t.Errorf("%v is not %v", was.limits, is.limits)
	}
	want := []string{
		"throttles.q.rate is an old name of rate_per_s", "throttles.q.timeout is an old name of slot_for_s",
		"throttles.q.worker is an old name of per_worker", "queue_limit[0].worker is an old name of per_worker",
	}
	if old := was.OldNames(); !slices.Equal(old, want) || len(is.OldNames()) != 0 {
		t.Errorf("old names: %q, want %q; of the new ones %q", old, want, is.OldNames())
	}
}
