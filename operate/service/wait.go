package service

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"broker/access"
	"broker/core"
)

// Wait explains why a job does not run now.
type Wait struct {
	Reason string     `json:"reason" doc:"as the reason of a job"`
	Text   string     `json:"text" doc:"the cause in a sentence or two"`
	Job    string     `json:"job,omitempty" doc:"of a queue: the job, seq:N, that the text is about"`
	Limit  *WaitLimit `json:"limit,omitempty" doc:"the limit that is reached"`

	Key    string `json:"key,omitempty" doc:"in an ordered queue: the key of the job"`
	Holder string `json:"holder,omitempty" doc:"the first job of the key that has not ended, seq:N"`
}

// WaitLimit is a limit that is reached.
type WaitLimit struct {
	Scope       string     `json:"scope" enum:"queue,type,key,shared"`
	Name        string     `json:"name,omitempty" doc:"the type, the key, or the name of the shared limit"`
	Concurrency uint32     `json:"concurrency,omitempty"`
	Taken       uint32     `json:"taken,omitempty"`
	RatePerS    float64    `json:"rate_per_s,omitempty"`
	NextAt      *time.Time `json:"next_at,omitempty" doc:"when the rate allows the next start"`
}

// shownCauses limits the jobs that a text names.
const shownCauses = 3

// wait explains why a job does not run; nil: it runs or has ended. It is the only place that puts reasons into words.
func (s *Service) wait(c *session, info *core.JobInfo) *Wait {
	w := &Wait{Reason: info.Reason.String()}
	switch info.Reason {
	case core.WaitNone:
		return nil
	case core.WaitWorker:
		w.Text = s.workerText(c, info.Queue)
	case core.WaitPaused:
		w.Text = "The queue is paused" + s.pausedText(info.Queue) + ": resume it to run its jobs."
	case core.WaitDraining:
		w.Text = "The broker is draining: it hands out no job until that ends."
	case core.WaitLimit:
		s.setLimit(w, info.Wait)
	case core.WaitTime:
		w.Text = s.dueText(info)
	case core.WaitJobs:
		w.Text = "It comes after " + countOf(len(info.Waiting), "job") + ": " + s.causesText(c, info.Waiting) + "."
	case core.WaitBatch:
		w.Text = "It is the callback of a batch, and waits for the batch's jobs."
	case core.WaitBroken:
		w.Text = "A job that it comes after is gone without being done: run it now, or cancel it."
	case core.WaitOrder:
		w.Key = text(info.Key)
		w.Text = "The queue runs the jobs of a key in order, and " + countOf(info.Behind, "earlier job") +
			" of the key " + w.Key + " " + areIs(info.Behind) + " not done."
		if info.Wait != nil {
			w.Holder = seqName(info.Wait.Holder)
			w.Text += " The first of them, " + w.Holder + ", is " + info.Wait.HolderState.String() + "."
		}
	}
	return w
}

// setLimit describes the limit that is reached.
func (s *Service) setLimit(w *Wait, cause *core.Wait) {
	if cause == nil || cause.Limit == nil {
		w.Text = "The jobs of the queue are being sorted after a change of its limits, which takes some seconds."
		return
	}
	l := cause.Limit
	w.Limit = &WaitLimit{
		Scope: limitScopes[l.ID.Scope], Name: text(l.ID.Of), Concurrency: l.Leased, Taken: l.Taken,
		RatePerS: l.Rate, NextAt: timeOf(l.NextAt),
	}
	of := "of the queue"
	switch {
	case l.ID.Name != "":
		w.Limit.Scope, w.Limit.Name = sharedScope, text(l.ID.Name)
		of = "of the shared limit " + w.Limit.Name
	case l.ID.Scope == core.ScopeType:
		of = "of the type " + w.Limit.Name
	case l.ID.Scope == core.ScopeKey && l.ID.Of == "":
		of = "without a key"
	case l.ID.Scope == core.ScopeKey:
		of = "of the key " + w.Limit.Name
	}
	if l.NextAt != 0 {
		w.Text = "At most " + strconv.FormatFloat(l.Rate, 'g', 4, 64) + " jobs " + of +
			" may start a second: the next may start in " + spanText(l.NextAt.Sub(s.Now())) + "."
		return
	}
	w.Text = "At most " + countOf(int(l.Leased), "job") + " " + of + " may run at once, and " + fmt.Sprint(l.Taken) +
		" " + areIs(int(l.Taken)) + " running."
}

// workerText says what the workers of a queue do.
func (s *Service) workerText(c *session, queue string) string {
	r, err := c.ask(&core.InspectQueue{Queue: queue})
	if err != nil || len(r.Queues) == 0 {
		return "It waits for a worker."
	}
	q := &r.Queues[0]
	if q.Workers == 0 && q.Leased == 0 {
		return "No worker asks for jobs of this queue."
	}
	running := core.Filter{Queues: []string{queue}, States: []core.State{core.Leased}}
	busy, err := c.ask(&core.Find{Filter: running, Order: core.OrderLeased, Limit: shownCauses, Brief: true})
	workers := "Its " + countOf(q.Workers, "worker") + " " + areIs(q.Workers)
	switch {
	case err != nil || q.Leased == 0:
		return workers + " busy with jobs of other queues, or between two requests."
	case q.Workers == 0:
		workers = "Workers that are gone still hold"
	default:
		workers += " busy with"
	}
	seqs := make([]uint64, len(busy.Jobs))
	for i := range busy.Jobs {
		seqs[i] = busy.Jobs[i].Seq
	}
	most := ""
	if n := q.Throttle.LeasedPerWorker; n > 0 {
		most = " A worker may run at most " + fmt.Sprint(n) + " at once."
	}
	return workers + " " + countOf(q.Leased, "job") + ": " + namesText(seqs, q.Leased) + "." + most
}

// pausedText says who has paused a queue and when, as far as it is known.
func (s *Service) pausedText(queue string) string {
	by, at := s.pausedBy(queue)
	var parts []string
	if by != "" && by != access.NameAnonymous {
		parts = append(parts, "by "+by)
	}
	if at != nil {
		parts = append(parts, spanText(s.Now().Time().Sub(*at))+" ago")
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// dueText says when a job is due.
func (s *Service) dueText(info *core.JobInfo) string {
	in := "in " + spanText(info.ReadyAt.Sub(s.Now()))
	if info.State == core.Retrying {
		return "It has failed " + countOf(int(info.Fails), "time") + "; the next try is due " + in + "."
	}
	return "It is due " + in + "."
}

// causesText lists jobs with their states, as far as they are known.
func (s *Service) causesText(c *session, seqs []uint64) string {
	names := make([]string, 0, shownCauses+1)
	for _, seq := range seqs[:min(len(seqs), shownCauses)] {
		name := seqName(seq)
		r, err := c.ask(&core.Inspect{Ref: core.Ref{Seq: seq}, Brief: true})
		if err == nil && r.Info != nil && c.caller.may(access.Read, r.Info.Queue) == nil {
			name += " (" + r.Info.State.String() + ")"
		}
		names = append(names, name)
	}
	if more := len(seqs) - len(names); more > 0 {
		names = append(names, fmt.Sprint(more, " more"))
	}
	return strings.Join(names, ", ")
}

// namesText lists jobs, of which there are n.
func namesText(seqs []uint64, n int) string {
	names := make([]string, len(seqs))
	for i, seq := range seqs {
		names[i] = seqName(seq)
	}
	if n > len(seqs) {
		names = append(names, fmt.Sprint(n-len(seqs), " more"))
	}
	return strings.Join(names, ", ")
}

// QueueWait explains why the next job of a queue does not run: of the first ready job, else of the first blocked one,
// else of the first that is due; nil: there is none.
func (s *Service) QueueWait(ctx context.Context, caller Caller, q *Queue) (*Wait, error) {
	if err := caller.may(access.Read, q.Name); err != nil {
		return nil, err
	}
	c := s.open(caller)
	defer c.Close()
	return s.queueWait(ctx, c, q.Name, q)
}

func (s *Service) queueWait(ctx context.Context, c *session, name string, q *Queue) (*Wait, error) {
	for _, next := range []struct {
		jobs  int
		state core.State
		order core.Order
	}{
		{q.Ready, core.Ready, core.OrderQueue},
		{q.Blocked, core.Blocked, core.OrderCreated},
		{q.Retrying, core.Retrying, core.OrderDue},
		{q.Scheduled, core.Scheduled, core.OrderDue},
	} {
		if next.jobs == 0 {
			continue
		}
		filter := core.Filter{Queues: []string{name}, States: []core.State{next.state}}
		r, err := c.call(ctx, &core.Find{Filter: filter, Order: next.order, Limit: 1, Brief: true})
		if err != nil || len(r.Jobs) == 0 {
			return nil, err
		}
		one, err := c.call(ctx, &core.Inspect{Ref: core.Ref{Seq: r.Jobs[0].Seq}, Brief: true})
		if IsCode(err, CodeJobNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		w := s.wait(c, one.Info)
		if w != nil {
			w.Job = seqName(one.Info.Seq)
			if rest, ofJob := strings.CutPrefix(w.Text, "It "); ofJob {
				w.Text = "The next job, " + w.Job + ", " + rest
			}
		}
		return w, nil
	}
	return nil, nil
}

// countOf is a number with a noun.
func countOf(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprint(n, " ", noun, "s")
}

func areIs(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// spanText is a length of time in its two largest units.
func spanText(d time.Duration) string {
	switch d = max(d, 0).Round(100 * time.Millisecond); {
	case d >= 24*time.Hour:
		return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	}
	return strconv.FormatFloat(d.Seconds(), 'g', 3, 64) + " s"
}
