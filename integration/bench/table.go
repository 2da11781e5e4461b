package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// table collects the rows of one mode.
type table struct {
	mode mode
	rows grid
}

func newTable(m mode) *table {
	t := &table{mode: m}
	if m.rate == bytesRate {
		t.rows = grid{{
			"protocol", "server", "server µs/job", "bytes/job", "submits/s", "load µs/job", "against: bytes; µs",
		}}
	} else {
		t.rows = grid{{
			"protocol", "server", "server µs/job", "jobs/s", "submits/s", "p50", "p99", "load µs/job",
			"against: " + m.rate + "; µs",
		}}
	}
	return t
}

// add adds the results of one group, in the order of its contenders.
func (t *table) add(g group, results [][]figures) {
	for i, c := range g.contenders {
		switch {
		case c.missing != "":
			t.rows = append(t.rows, []string{c.protocol(g), c.name, "missing"})
		case len(results[i]) > 0:
			t.rows = append(t.rows, append([]string{c.protocol(g), c.name}, t.row(g, results, i)...))
		}
	}
}

func (t *table) row(g group, results [][]figures, i int) []string {
	pick := func(of func(f figures) float64) float64 {
		var values []float64
		for _, f := range results[i] {
			values = append(values, of(f))
		}
		return median(values)
	}
	cost := micros(pick(cpuPerJob))
	if lead := pick(func(f figures) float64 { return f.leaderMicros }); lead > 0 {
		cost += ", leader " + micros(lead)
	}
	submits := thousands(pick(func(f figures) float64 { return f.submitsPerSec }))
	load, against := micros(pick(func(f figures) float64 { return f.loadMicros })), t.against(g, results, i)
	if t.mode.rate == bytesRate {
		return []string{cost, thousands(t.middle(results[i])), submits, load, against}
	}
	return []string{
		cost, thousands(pick(func(f figures) float64 { return f.jobsPerSec })), submits,
		span(pick(func(f figures) float64 { return float64(f.p50) })),
		span(pick(func(f figures) float64 { return float64(f.p99) })),
		load, against,
	}
}

// cpuPerJob returns the server's processor time of a job.
func cpuPerJob(f figures) float64 { return f.serverMicros }

// compared returns the result by which contenders are compared in this mode.
func (t *table) compared(f figures) float64 {
	switch t.mode.rate {
	case bytesRate:
		return f.bytesPerJob
	case "submits/s":
		return f.submitsPerSec
	default:
		return f.jobsPerSec
	}
}

// ratio returns the median over all rounds of contender i's result divided by contender k's in the same round.
func ratio(results [][]figures, i, k int, of func(f figures) float64) float64 {
	var ratios []float64
	for round := range results[k] {
		ratios = append(ratios, of(results[i][round])/of(results[k][round]))
	}
	return median(ratios)
}

// middle returns the median of the compared result.
func (t *table) middle(results []figures) float64 {
	var values []float64
	for _, f := range results {
		values = append(values, t.compared(f))
	}
	return median(values)
}

// against returns the ratios of the broker to each peer: of the compared result, and of the processor time of a job.
func (t *table) against(g group, results [][]figures, i int) string {
	if !g.contenders[i].ours {
		return ""
	}
	var parts []string
	for k, peer := range g.contenders {
		if len(results[k]) == 0 || !g.contenders[i].meets(peer) {
			continue
		}
		parts = append(parts, fmt.Sprintf("%.2f×; %.2f× %s", ratio(results, i, k, t.compared),
			ratio(results, i, k, cpuPerJob), peer.name))
	}
	return strings.Join(parts, ", ")
}

func (t *table) print(w io.Writer) { t.rows.print(w) }

func thousands(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func span(ns float64) string {
	d := time.Duration(ns)
	switch {
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond / 10).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	default:
		return d.Round(time.Microsecond).String()
	}
}

// filesystem returns the file system of the folder. On one in memory nothing is synced, and the results of servers that
// write to disk are meaningless.
func filesystem(dir string) string {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return dir
	}
	const tmpfs = 0x01021994
	if st.Type == tmpfs {
		return dir + ", which is in memory: choose another with -dir"
	}
	return dir
}

// syncRate returns how many small synced writes the disk does per second. It limits every server that syncs: with one
// job in flight per worker, each sync acknowledges at most one job per worker.
func syncRate(dir string) (float64, error) {
	f, err := os.CreateTemp(dir, "sync-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // what was written is of no use to anybody
	const writes = 100
	block := make([]byte, 4096)
	begin := time.Now()
	for range writes {
		if _, err := f.Write(block); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
	}
	return writes / time.Since(begin).Seconds(), nil
}
