package machine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/internal/telemetry"
)

// metered is a machine with few meters and a client.
type metered struct {
	t   *testing.T
	m   *Machine
	now core.Instant
	id  core.ClientID
}

func newMetered(t *testing.T, limit int) *metered {
	t.Helper()
	d := &metered{t: t, now: core.InstantOf(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))}
	d.m = New(Options{Persist: true, StartedAt: d.now, MaxDetailed: limit})

	d.id = d.m.OpenClient(d.now, core.ClientOptions{})
	return d
}

func (d *metered) do(op core.Op) core.Reply {
	d.m.Apply(d.now, d.id, []core.Op{op})
	r := d.m.Take(d.id, nil)
	if err := d.m.Check(); err != nil {
		d.t.Fatal(err)
	}
	return r[len(r)-1]
}

// submit submits and finishes jobs, and lets a second pass.
func (d *metered) work(queue string, jobs int) {
	for range jobs {
		d.do(&core.Submit{Job: &core.Job{Queue: queue}})
		r := d.do(&core.Lease{Queues: []string{queue}})
		d.do(&core.Complete{Ref: core.Ref{Seq: r.Seq}})
	}
	d.now = d.now.Add(time.Second)
}

func (d *metered) submitted(op core.ReadSeries) (n uint64) {
	op.Step = core.Step1m
	for _, p := range d.do(&op).Series.Points {
		n += p.Submitted
	}
	return n
}

func (d *metered) seal() (names []string) {
	var s Sealed
	d.m.Seal(&s)
	for _, e := range s.Batch.Meta {
		if strings.HasPrefix(e.Name, telemetry.SeriesPrefix) {
			names = append(names, fmt.Sprintf("%s %v", e.Name, e.Value != nil))
		}
	}
	return names
}

// TestBusiestQueuesHaveMeters makes a queue busy that was created too late for a meter.
func TestBusiestQueuesHaveMeters(t *testing.T) {
	t.Parallel()
	d := newMetered(t, 2)
	d.work("idle", 5)
	d.work("steady", 30)
	d.work("late", 8)
	d.now = d.now.Add(10 * time.Minute) // a round of writing
	d.do(&core.Submit{Job: &core.Job{Queue: "steady"}})
	if names := d.seal(); !slices.Contains(names, "core/series/0/00/q/idle true") &&
		!slices.ContainsFunc(names, func(n string) bool {
			return strings.HasSuffix(n, "q/idle true")
		}) {
		t.Fatalf("stored %v", names)
	}
	meter := func(queue string) bool { return len(d.do(&core.ReadSeries{Queue: queue}).Series.Points) > 0 }
	if !meter("idle") || !meter("steady") || meter("late") {
		t.Fatal("the first two queues should have meters")
	}
	for range 3 {
		d.work("steady", 30)
		d.work("late", 40)
		d.now = d.now.Add(time.Minute)
		d.do(&core.ReadStats{})
	}
	if meter("idle") || !meter("steady") || !meter("late") {
		t.Fatal("the busiest two queues should have meters")
	}
	rows := d.do(&core.ListQueues{Busiest: true, Limit: 1}).Queues
	if len(rows) != 2 || rows[0].Name != "late" || rows[1].Name != "steady" ||
		rows[0].Counts.Submitted[core.Internal] != 128 {
		t.Errorf("the busiest queues are %+v", rows)
	}
	if names := d.seal(); !slices.ContainsFunc(names,
		func(n string) bool { return strings.HasSuffix(n, "q/idle false") }) {
		t.Errorf("the series of a queue without a meter stay stored: %v", names)
	}
	d.now = d.now.Add(time.Minute)
	all := d.submitted(core.ReadSeries{})
	if want := uint64(5 + 30 + 8 + 1 + 3*70); all != want {
		t.Errorf("%d jobs were submitted in all, want %d", all, want)
	}
	h := d.do(&core.ReadHistograms{}).Histograms
	rest := d.do(&core.ReadHistograms{Rest: true}).Histograms
	sum := rest.Run.Count()
	for _, q := range []string{"steady", "late"} {
		sum += d.do(&core.ReadHistograms{Queue: q}).Histograms.Run.Count()
	}
	if h.Run.Count() != all-1 || sum != all-1 {
		t.Errorf("%d jobs ran in all, %d by queue and rest, want %d", h.Run.Count(), sum, all-1)
	}
}

// BenchmarkEndStep ends a step in which a thousand queues were busy.
func BenchmarkEndStep(b *testing.B) {
	m := New(Options{StartedAt: 1 << 50})
	id := m.OpenClient(1<<50, core.ClientOptions{})
	now := core.Instant(1 << 50)
	var ops []core.Op
	for i := range core.MaxDetailed {
		queue := fmt.Sprint("queue ", i)
		for k := range 3 {
			ops = append(ops, &core.Submit{Job: &core.Job{Queue: queue, Priority: int64(k)}},
				&core.Lease{Queues: []string{queue}})
		}
	}
	for b.Loop() {
		b.StopTimer()
		for _, op := range ops {
			if s, ok := op.(*core.Submit); ok {
				s.Job = &core.Job{Queue: s.Job.Queue}
			}
		}
		m.Apply(now, id, ops)
		for _, r := range m.Take(id, nil) {
			if r.Kind == core.Assigned {
				m.Apply(now+core.Instant(r.Seq%1000)*500, id, []core.Op{&core.Complete{Ref: core.Ref{Seq: r.Seq}}})
			}
		}
		m.Take(id, nil)
		now = now.Add(core.Step2s.Span())
		b.StartTimer()
		m.meters.EndStep(now)
	}
}
