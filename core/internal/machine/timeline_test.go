package machine_test

import (
	"fmt"
	"testing"

	"broker/core"
	"broker/core/coretest"
	"broker/core/internal/machine"
)

// timeline writes the entries of a timeline, each without its zero fields.
func (p *player) timeline(t *core.Timeline) (lines []string) {
	if t == nil {
		return nil
	}
	for _, e := range t.Entries {
		line := fmt.Sprintf("%d %v %v by %v", e.Number, p.at(e.At), e.Kind, e.Protocol)
		for _, f := range []struct{ name, value string }{
			{"worker", e.Worker},
			{"at", e.Address},
			{"queue", e.Queue},
			{"detail", e.Detail},
			{"group", e.Group},
			{"text", e.Text},
			{"version", e.Version},
		} {
			if f.value != "" {
				line += fmt.Sprintf(" %s=%q", f.name, f.value)
			}
		}
		lines = append(lines, line)
	}
	if n := t.Count - len(t.Entries); n > 0 {
		lines = append(lines, fmt.Sprintf("%d not kept", n))
	}
	return lines
}

// TestTimelineKeepsItsBeginningAndItsEnd fails a job many times, with commits in between and without.
func TestTimelineKeepsItsBeginningAndItsEnd(t *testing.T) {
	t.Parallel()
	for asked, want := range map[uint16][2]int{0: {20, 40}, 2: {1, 2}, 7: {1, 7}, 2000: {1, 1000}} {
		for _, commitEvery := range []int{1, 3, 100, 10_000} {
			p := newPlayer()
			if commitEvery == 10_000 {
				p.opts.Persist = false
				p.boot()
			}
			p.ask(&core.Submit{Job: &core.Job{Queue: "q", Timeline: asked}})
			for i := range 700 {
				p.ask(&core.Move{Ref: core.Ref{Seq: 1}, Queue: fmt.Sprint(i + 1)})
				if i%commitEvery == 0 && p.opts.Persist {
					if _, err := p.commit(); err != nil {
						t.Fatal(err)
					}
				}
			}
			got := p.ask(&core.Inspect{Ref: core.Ref{Seq: 1}, Timeline: true}).Info.Timeline
			if got.First != want[0] || got.Length != want[1] || got.Count != 701 ||
				len(got.Entries) != min(701, want[1]) {
				t.Fatalf("%d asked, commit every %d: %d entries of %d, shape %d and %d", asked, commitEvery,
					len(got.Entries), got.Count, got.First, got.Length)
			}
			for i, e := range got.Entries {
				n := i
				if i >= want[0] {
					n = 701 - len(got.Entries) + i
				}
				if int(e.Number) != n || n > 0 && e.Queue != fmt.Sprint(n) {
					t.Errorf("%d asked, commit every %d: entry %d is %+v", asked, commitEvery, i, e)
				}
			}
			if err := p.m.Check(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestPlainJobHasNoTimeline counts the cost of a job that is submitted, leased and done: no more allocations and
// records than for the job, its lease and the counters.
func TestPlainJobHasNoTimeline(t *testing.T) {
	clk := coretest.NewClock()
	m := machine.New(machine.Options{Persist: true, StartedAt: clk.Now()})
	c := m.OpenClient(clk.Now(), core.ClientOptions{Protocol: core.Gearman, Address: "a"})
	var sealed machine.Sealed
	var replies []core.Reply
	submit, lease, done := &core.Submit{}, &core.Lease{Queues: []string{"q"}}, &core.Complete{}
	ops := []core.Op{submit, lease}
	jobs := make([]core.Job, 2000)
	run := func() {
		submit.Job, jobs = &jobs[0], jobs[1:]
		submit.Job.Queue = "q"
		m.Apply(clk.Now(), c, ops)
		replies = m.Take(c, replies[:0])
		m.Seal(&sealed)
		for i := range sealed.Batch.Changes {
			if ch := &sealed.Batch.Changes[i]; ch.Status != nil || len(ch.Timeline) > 0 {
				t.Fatalf("a leased job is stored with %+v and %+v", ch.Status, ch.Timeline)
			}
		}
		m.Committed(&sealed)
		done.Ref.Seq = replies[len(replies)-1].Seq
		m.Apply(clk.Now(), c, []core.Op{done})
		replies = m.Take(c, replies[:0])
		m.Seal(&sealed)
		if n := len(sealed.Batch.Changes); n != 1 || sealed.Batch.Changes[0].TimelineSlots != 0 {
			t.Fatalf("%d changes: %+v", n, sealed.Batch.Changes)
		}
		m.Committed(&sealed)
	}
	for range 900 {
		run()
	}
	if n := testing.AllocsPerRun(900, run); n > plainJobAllocs {
		t.Errorf("%v allocations a job, want %v", n, plainJobAllocs)
	}
}

// plainJobAllocs is the number of allocations of such a job with two commits of its own; most are for the counters.
const plainJobAllocs = 8
