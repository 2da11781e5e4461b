package main

import (
	"bytes"
	"strings"
	"testing"

	"broker/integration/harness"
)

// small is a lab with short loads.
func small(t *testing.T, protocol string) *lab {
	t.Helper()
	return &lab{
		settings: settings{
			groups: []string{protocol}, durabilities: []string{"none"}, jobs: 800,
			deep: numbers{1000, 3000}, queues: numbers{1, 30}, scheduled: numbers{0, 200}, keys: numbers{0, 200},
			payloads: numbers{16, 300_000}, sleepers: numbers{2, 20}, idle: 50, wakes: 20, fan: 2500,
		},
		scratch: t.TempDir(), binary: harness.Binary(t), facts: &results{},
	}
}

// rows counts the table rows that a study printed, without headings.
func rows(printed string) int {
	n := 0
	for _, table := range strings.Split(printed, "\n\n") {
		n += max(strings.Count(strings.TrimSpace(table), "\n|")-1, 0)
	}
	return n
}

func TestEveryStudyRunsOverEveryProtocol(t *testing.T) {
	t.Parallel()
	want := map[string]int{"f": 2 * 2 * 2, "g": 1 + 2, "h": 4 * 2, "j": 1}
	for _, p := range protocols() {
		for _, s := range studies() {
			if s.letter == "p" {
				continue // it is about SQS
			}
			t.Run(p.name+", "+s.letter, func(t *testing.T) {
				t.Parallel()
				l := small(t, p.name)
				var out bytes.Buffer
				if err := s.run(l, &out); err != nil {
					t.Fatal(err)
				}
				if got := rows(out.String()); got != want[s.letter] {
					t.Errorf("%d rows, want %d:\n%s", got, want[s.letter], out.String())
				}
				plausible(t, l.facts)
			})
		}
	}
}

func TestLongPollsAreMeasured(t *testing.T) {
	t.Parallel()
	l := small(t, sqsName)
	l.polls, l.wakes = 50, 20
	var out bytes.Buffer
	if err := l.longPolls(&out); err != nil {
		t.Fatal(err)
	}
	if got := l.facts.polls; rows(out.String()) != 1 || len(got) != 1 || got[0].p50 <= 0 || got[0].after <= 0 {
		t.Errorf("%+v\n%s", got, out.String())
	}
}

// plausible checks the results for which zero would mean that nothing was measured. It ignores CPU time, which is
// counted in steps of 10 ms and may be zero for short loads.
func plausible(t *testing.T, f *results) {
	t.Helper()
	drained := 0.0
	for _, d := range f.depths {
		drained += d.drain.micros
		if d.submit.perSec <= 0 || d.start <= 0 || d.started <= 0 || d.lease.perSec <= 0 || d.lease.p50 <= 0 ||
			d.lease.p99 < d.lease.p50 || d.drain.perSec <= 0 || d.roomMissing {
			t.Errorf("depth %+v", d)
		}
	}
	if len(f.depths) > 0 && drained <= 0 {
		t.Errorf("no drain took any time of the processor: %+v", f.depths)
	}
	for _, c := range f.idle {
		if c.held != c.wanted || c.sample == 0 || c.answered != c.sample || c.after <= 0 || c.opened.perSec <= 0 {
			t.Errorf("idle %+v", c)
		}
	}
	for _, r := range f.fans {
		for _, b := range []bystanders{r.quiet, r.build, r.broken} {
			if b.p50 <= 0 || b.p99 < b.p50 || b.most < b.p99 || b.took <= 0 {
				t.Errorf("beside a fan of %d: %+v", r.dependents, b)
			}
		}
	}
	for _, w := range f.wakeUps {
		if w.perSec <= 0 || w.p50 <= 0 || w.p99 < w.p50 {
			t.Errorf("wake-up %+v", w)
		}
	}
}

func TestGoalsListMeasuredAndMissingFigures(t *testing.T) {
	t.Parallel()
	f := &results{
		missing: map[string]string{"beanstalkd": "not installed"},
		ratios: map[match]float64{
			{"a", "gearman", brokerNone, "gearmand"}: 3.1,
			{"a", "gearman", brokerSync, "gearmand"}: 1.9,
		},
		bytes: map[string]float64{"gearman, broker none": 150, "workq, broker sync": 210},
		depths: []depth{
			{protocol: "gearman", queues: 1, jobs: 10_000, lease: stepCost{p50: 100}},
			{
				protocol: "gearman", queues: 1, jobs: 10_000_000, lease: stepCost{p50: 160}, start: 25e9,
				full: 2_400_000_000,
			},
		},
		idle: []idleResult{
			{protocol: "workq", held: 20_000, after: 390_000_000}, {protocol: "gearman", held: 20_000, after: 1},
		},
	}
	got := goalTable(f)
	for _, want := range [][]string{
		{"background jobs, 64 in flight", "broker none: 3.0× gearmand", "3.10×", "yes"},
		{"background jobs, 64 in flight", "broker sync: 2.0× gearmand", "1.90×", "no"},
		{"the same, every write synced", "broker sync: 5.0× beanstalkd -f 0", "beanstalkd is missing", ""},
		{
			"Faktory push, fetch, ack", "broker sync: 5.0× faktory, redis", "not in this run: mode a, protocol faktory",
			"",
		},
		{"memory per waiting 256-byte job", "at most 200 B", "210 B at most (workq, broker sync)", "no"},
		{"10 million waiting jobs: start", "in 30 s", "25.00 s at 10,000,000 jobs", "yes"},
		{"10 million waiting jobs: resident memory", "under 2,500 MB", "2,400 MB at 10,000,000 jobs", "yes"},
		{
			"10 million waiting jobs: lease", "median at most 1.5 times that of the least deep",
			"1.60 times at 10,000,000 jobs", "no",
		},
		{"20,000 idle connections", "under 400 MB", "390 MB with 20,000 over workq", "yes"},
	} {
		if !hasRow(got, want) {
			t.Errorf("no row %q in\n%q", want, got)
		}
	}
	f.depths, f.idle[0].held = f.depths[:1], 18_000
	for _, row := range goalTable(f)[len(got)-4:] {
		if row[3] != "" {
			t.Errorf("%q is judged by a smaller load than the target's", row)
		}
	}
}

func hasRow(g grid, want []string) bool {
	for _, row := range g {
		if strings.Join(row, "|") == strings.Join(want, "|") {
			return true
		}
	}
	return false
}

func TestGridIsMarkdown(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	grid{{"a", "µs"}, {"long"}, {"b", "1"}}.print(&out)
	want := "| a    | µs |\n| ---- | -- |\n| long |    |\n| b    | 1  |\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestNumbersHaveUnits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"0,10,2k,3M": "0,10,2000,3000000", "64Ki,1Mi": "65536,1048576"} {
		var n numbers
		if err := n.Set(text); err != nil || n.String() != want {
			t.Errorf("%s is %s (%v), want %s", text, n.String(), err, want)
		}
	}
	var one number
	if err := one.Set("400k"); err != nil || one != 400_000 {
		t.Errorf("400k is %d (%v)", one, err)
	}
	for _, text := range []string{"", "k", "-1", "1G", "1,,2"} {
		var n numbers
		if n.Set(text) == nil {
			t.Errorf("%q is taken for %s", text, n.String())
		}
	}
}

func TestLeasesAskForTheQueuesInTheOrderOfTheJobs(t *testing.T) {
	t.Parallel()
	tally := &tally{
		loadSize: usual, total: 4, shape: shape{queues: []string{"a", "b", "c"}},
		workerTally: workerTally{first: 5, hold: true},
	}
	workers := []leaser{newLeaser(tally), newLeaser(tally)}
	var c conn
	var asked []string
	for i := 0; ; i++ {
		w := &workers[i%2]
		queue, more := w.next()
		if !more {
			break
		}
		asked = append(asked, queue)
		w.ask(&c)
		out := w.got(&c)
		*out = append(*out, "done "+queue+" "...)
	}
	if got := strings.Join(asked, " "); got != "c a b c" {
		t.Errorf("asked for %s", got)
	}
	if len(c.out) != 0 || tally.leased != 4 {
		t.Errorf("%d leases, finished %q before the last of them", tally.leased, c.out)
	}
	workers[0].release(&c)
	workers[1].release(&c)
	if got := string(c.out); got != "done c done b done a done c " || workers[0].sent != 2 || workers[1].sent != 2 {
		t.Errorf("finished %q: %d and %d", got, workers[0].sent, workers[1].sent)
	}
}
