package main

import (
	"fmt"
	"slices"
	"time"
)

// results are the results of a run for which there are targets.
type results struct {
	missing map[string]string // peers, and why they are
	ratios  map[match]float64
	bytes   map[string]float64 // of a waiting job, by protocol and durability
	depths  []depth
	idle    []idleResult
	wakeUps []wakeUp
	polls   []pollResult
	fans    []fanResult
}

// match compares the broker with a peer.
type match struct{ mode, group, ours, peer string }

// note records the results of one group in a mode.
func (f *results) note(t *table, g group, results [][]figures) {
	if f.ratios == nil {
		f.ratios, f.bytes = make(map[match]float64), make(map[string]float64)
	}
	for i, c := range g.contenders {
		if !c.ours || len(results[i]) == 0 {
			continue
		}
		if t.mode.rate == bytesRate {
			f.bytes[g.name+", "+c.name] = t.middle(results[i])
			continue
		}
		for k, peer := range g.contenders {
			if len(results[k]) > 0 && c.meets(peer) {
				f.ratios[match{t.mode.letter, g.name, c.name, peer.name}] = ratio(results, i, k, t.compared)
			}
		}
	}
}

const (
	brokerSync = "broker sync"
	brokerNone = "broker none"
	limitName  = "limit"
)

// versus are the targets given as multiples of a peer's result.
var versus = []struct {
	work string
	match
	least float64
}{
	{"background jobs, 64 in flight", match{"a", "gearman", brokerNone, "gearmand"}, 3},
	{"background jobs, 64 in flight", match{"a", "gearman", brokerSync, "gearmand"}, 2},
	{"the same, one in flight: submissions", match{"b", "gearman", brokerNone, "gearmand"}, 1},
	{"the same, one in flight: submissions", match{"b", "gearman", brokerSync, "gearmand"}, 0.5},
	{"foreground round trips", match{"c", "gearman", brokerNone, "gearmand"}, 2},
	{"foreground round trips", match{"c", "gearman", brokerSync, "gearmand"}, 2},
	{"add, lease, complete against put, reserve, delete", match{"a", "workq", brokerNone, "beanstalkd"}, 2},
	{"add, lease, complete against put, reserve, delete", match{"a", "workq", brokerSync, "beanstalkd"}, 2},
	{"the same, every write synced", match{"a", "workq", brokerSync, "beanstalkd -f 0"}, 5},
	{"beanstalkd put, reserve, delete", match{"a", beanstalkName, brokerNone, "beanstalkd"}, 1},
	{"the same, every write synced", match{"a", beanstalkName, brokerSync, "beanstalkd -f 0"}, 4},
	{"Faktory push, fetch, ack", match{"a", "faktory", brokerSync, faktoryName}, 5},
	{"Workq add, lease, complete", match{"a", "workq", brokerSync, "Workq server"}, 3},
}

// goalTable compares the results with the targets. A row without a result says so.
func goalTable(f *results) grid {
	out := grid{{"work", "target", "measured", "met"}}
	for _, v := range versus {
		target := fmt.Sprintf("%s: %.1f× %s", v.ours, v.least, v.peer)
		ratio, measured := f.ratios[v.match]
		if !measured {
			out = append(out, []string{v.work, target, f.whyNot(v.match), ""})
			continue
		}
		out = append(out, []string{v.work, target, fmt.Sprintf("%.2f×", ratio), yes(ratio >= v.least)})
	}
	out = append(out, f.memoryRow())
	out = append(out, f.depthRows()...)
	return append(out, f.idleRow(), f.pollRow())
}

// whyNot returns why a comparison is missing.
func (f *results) whyNot(m match) string {
	programs := map[string]string{
		"gearmand": "gearmand", "beanstalkd": "beanstalkd", "beanstalkd -f 0": "beanstalkd", faktoryName: "faktory",
	}
	program, known := programs[m.peer]
	switch {
	case !known:
		return "no " + m.peer + " here to compare with"
	case f.missing[program] != "":
		return program + " is missing"
	}
	return "not in this run: mode " + m.mode + ", protocol " + m.group
}

func yes(met bool) string {
	if met {
		return "yes"
	}
	return "no"
}

func (f *results) memoryRow() []string {
	const most = 200
	row := []string{"memory per waiting 256-byte job", "at most 200 B", "not in this run: mode e", ""}
	worst, by := 0.0, ""
	for name, bytes := range f.bytes {
		if bytes > worst || by == "" {
			worst, by = bytes, name
		}
	}
	if by != "" {
		row[2], row[3] = fmt.Sprintf("%s B at most (%s)", thousands(worst), by), yes(worst <= most)
	}
	return row
}

// depthRows evaluate the deepest queues of the run; with fewer jobs than the target requires they do not count as met.
func (f *results) depthRows() []([]string) {
	const (
		jobs    = 10_000_000
		longest = 30 * time.Second
		largest = 2_500_000_000
		steady  = 1.5
	)
	rows := [][]string{
		{"10 million waiting jobs: start", "in 30 s", "not in this run: mode f", ""},
		{"10 million waiting jobs: resident memory", "under 2,500 MB", "not in this run: mode f", ""},
		{
			"10 million waiting jobs: lease", "median at most 1.5 times that of the least deep",
			"not in this run: mode f", "",
		},
	}
	if len(f.depths) == 0 {
		return rows
	}
	deepest := 0
	for _, d := range f.depths {
		deepest = max(deepest, d.jobs)
	}
	var start time.Duration
	var resident int64
	slower := 0.0
	for _, d := range f.depths {
		if d.jobs == deepest {
			start, resident = max(start, d.start), max(resident, d.full, d.started)
			slower = max(slower, f.slowdown(d))
		}
	}
	at := fmt.Sprintf(" at %s jobs", thousands(float64(deepest)))
	for i, found := range []struct {
		text string
		met  bool
	}{
		{seconds(start) + at, start <= longest},
		{thousands(float64(resident)/1e6) + " MB" + at, resident < largest},
		{fmt.Sprintf("%.2f times%s", slower, at), slower <= steady},
	} {
		rows[i][2] = found.text
		if deepest >= jobs {
			rows[i][3] = yes(found.met)
		}
	}
	return rows
}

// slowdown is the median lease time relative to the shallowest queues of the same kind.
func (f *results) slowdown(d depth) float64 {
	least := d
	for _, other := range f.depths {
		if other.protocol == d.protocol && other.queues == d.queues && other.jobs < least.jobs {
			least = other
		}
	}
	return float64(d.lease.p50) / float64(max(least.lease.p50, 1))
}

func (f *results) idleRow() []string {
	const connections, most = 20_000, 400_000_000
	row := []string{"20,000 idle connections", "under 400 MB", "not in this run: mode g", ""}
	if len(f.idle) == 0 {
		return row
	}
	worst := slices.MaxFunc(f.idle, func(a, b idleResult) int { return int(a.after - b.after) })
	row[2] = fmt.Sprintf("%s MB with %s over %s", thousands(float64(worst.after)/1e6), thousands(float64(worst.held)),
		worst.protocol)
	if worst.held >= connections {
		row[3] = yes(worst.after < most)
	}
	return row
}

func (f *results) pollRow() []string {
	const polls, most = 5000, 100_000_000
	row := []string{"5,000 long polls of SQS", "under 100 MB", "not in this run: mode p", ""}
	for _, r := range f.polls {
		row[2] = fmt.Sprintf("%s MB more with %s", thousands(float64(r.after-r.before)/1e6),
			thousands(float64(r.polls)))
		if r.polls >= polls {
			row[3] = yes(r.after-r.before < most)
		}
	}
	return row
}
