package machine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/core"
)

// finished writes jobs that have ended.
func (p *player) finished(jobs []core.FinishedJob) string {
	lines := []string{fmt.Sprintf("%d finished", len(jobs))}
	for _, j := range jobs {
		line := fmt.Sprintf("%d %q %v %v in %s, %v of %v at %v", j.Seq,
			strings.Replace(j.ID, core.MintedID(j.Seq, j.CreatedAt), "minted", 1), j.Kind,
			j.Detail, j.Queue, j.Type, j.Origin, p.at(j.At))
		if j.LeasedAt != 0 {
			line += fmt.Sprintf(" leased=%v", p.at(j.LeasedAt))
		}
		lines = append(lines,
			line+fmt.Sprintf(" by %v %q attempts=%d fails=%d", j.Protocol, j.Worker, j.Attempts, j.Fails))
	}
	return strings.Join(lines, "\n")
}

func TestLastThousandFinishedJobsAreRemembered(t *testing.T) {
	t.Parallel()
	p := newPlayer()
	const jobs = 2*core.MaxFinished + 345
	for i := range jobs {
		p.ask(&core.Submit{Job: &core.Job{Queue: "q", ID: fmt.Sprint("id ", i)}})
		p.ask(&core.Cancel{Ref: core.Ref{Seq: uint64(i + 1)}})
	}
	for offset := 0; offset < core.MaxFinished; offset += 300 {
		page := p.ask(&core.ListFinished{Offset: offset, Limit: 300}).Finished
		if len(page) != min(300, core.MaxFinished-offset) {
			t.Fatalf("%d jobs from offset %d", len(page), offset)
		}
		for i, j := range page {
			if want := jobs - offset - i; j.Seq != uint64(want) || j.ID != fmt.Sprint("id ", want-1) {
				t.Fatalf("finished job %d is %+v, want %d", offset+i, j, want)
			}
		}
	}
}

// TestKeptJobsAreRemovedInSteps lowers the number of kept jobs: no step of the timer removes many jobs.
func TestKeptJobsAreRemovedInSteps(t *testing.T) {
	t.Parallel()
	p := newPlayer()
	p.ask(&core.KeepDone{Queue: "q", Retention: core.Retention{For: time.Hour}})
	const jobs = 1000
	for i := range jobs {
		p.ask(&core.Submit{Job: &core.Job{Queue: "q"}})
		p.ask(&core.Complete{Ref: core.Ref{Seq: uint64(i + 1)}, Authority: core.ByAnyone})
	}
	done := func() int { return p.ask(&core.InspectQueue{Queue: "q"}).Queues[0].Done }
	if n := done(); n != jobs {
		t.Fatalf("%d jobs are kept", n)
	}
	p.ask(&core.KeepDone{Queue: "q", Retention: core.Retention{Count: 10}})
	for last, more := jobs, true; more; {
		more = p.m.Tick(p.clk.Now(), 1)
		n := done()
		if last-n > 20 {
			t.Fatalf("%d jobs went at once", last-n)
		}
		last = n
		if err := p.m.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if n := done(); n != 10 {
		t.Errorf("%d jobs are left", n)
	}
	newest := p.ask(&core.Find{Order: core.OrderFinished, Desc: true, Limit: 1}).Jobs
	if len(newest) != 1 || newest[0].Seq != jobs {
		t.Errorf("the newest is %+v", newest)
	}
}
