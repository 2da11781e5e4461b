package sim

import (
	"cmp"
	"fmt"

	"broker/core"
)

// audit compares lists, rows and counters with each other and with each job.
func (w *world) audit() error {
	w.note("audit")
	for _, c := range w.clients {
		c.notReading = false // replies that were not fetched would look like leases without a holder
	}
	w.engine.Tick() // steps that the ends of jobs have left
	if err := w.collect(); err != nil {
		return err
	}
	if err := w.auditPauses(); err != nil {
		return err
	}
	if err := w.auditOrder(); err != nil {
		return err
	}
	listed := map[uint64]core.JobInfo{}
	var states [len(core.States) + 1]int
	for cursor := uint64(0); ; {
		r := w.ask(&core.ListJobs{Cursor: cursor, Limit: 1 + w.rng.IntN(30), Brief: w.rng.IntN(2) == 0})
		for _, i := range r.Jobs {
			if _, twice := listed[i.Seq]; twice {
				return fmt.Errorf("job %d is listed twice", i.Seq)
			}
			listed[i.Seq] = i
			if now := w.clk.Now(); i.ChangedAt > now {
				return fmt.Errorf("job %d is %v since %d, it is %d", i.Seq, i.State, i.ChangedAt, now)
			}
			states[i.State]++
		}
		if cursor = r.Cursor; cursor == 0 {
			break
		}
	}
	for _, seq := range w.model.seqs {
		i := w.look(seq)
		l, there := listed[seq]
		if (i != nil) != there || i != nil && (l.State != i.State || l.Queue != i.Queue || l.Attempts != i.Attempts) {
			return fmt.Errorf("job %d is listed as %+v and known as %+v", seq, l, i)
		}
		if p := w.model.jobs[seq]; i != nil && i.State == core.Leased && !p.leased {
			return fmt.Errorf("job %d is leased, and nobody has it", seq)
		}
		if i != nil {
			if err := cmp.Or(w.model.spent.checkOrigin(i), w.checkLeaseEnd(w.model.jobs[seq], i)); err != nil {
				return err
			}
		}
	}
	if stats := w.ask(&core.ReadStats{}).Stats; stats.Jobs != states {
		return fmt.Errorf("listed by state: %v, counted %v", states, stats.Jobs)
	}
	return cmp.Or(w.checkLeft(), w.checkBroken(), w.auditStops(listed), w.auditQueues(listed))
}

// auditQueues compares the rows of queues, and their lists in order, with the list of all jobs.
func (w *world) auditQueues(listed map[uint64]core.JobInfo) error {
	have := map[string]*[len(core.States) + 1]int{}
	for _, i := range listed {
		if have[i.Queue] == nil {
			have[i.Queue] = &[len(core.States) + 1]int{}
		}
		have[i.Queue][i.State]++
	}
	for _, q := range w.ask(&core.ListQueues{}).Queues {
		n := have[q.Name]
		if n == nil {
			n = &[len(core.States) + 1]int{}
		}
		row := [...]int{0, q.Scheduled, q.Blocked, q.Ready(), q.Leased, q.Retrying, q.Done, q.Dead}
		if *n != row {
			return fmt.Errorf("queue %s has %v, its row says %v", q.Name, *n, row)
		}
		var last *core.JobInfo
		jobs := w.ask(&core.ListJobs{Queue: q.Name, State: core.Ready, Limit: 1000, Brief: true}).Jobs
		if len(jobs) != q.Ready() {
			return fmt.Errorf("queue %s lists %d ready jobs of %d", q.Name, len(jobs), q.Ready())
		}
		for i := range jobs {
			if last != nil && last.Priority < jobs[i].Priority {
				return fmt.Errorf("queue %s lists job %d before job %d", q.Name, last.Seq, jobs[i].Seq)
			}
			if last != nil && last.Priority == jobs[i].Priority && last.Seq > jobs[i].Seq &&
				w.model.keepsPlace(last.Seq) && w.model.keepsPlace(jobs[i].Seq) {
				return fmt.Errorf("queue %s lists job %d before job %d, and both keep their places", q.Name, last.Seq,
					jobs[i].Seq)
			}
			last = &jobs[i]
		}
	}
	return nil
}
