package machine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"broker/core"
	"broker/core/coretest"
)

// at writes an instant as its distance from the beginning of the script.
func (p *player) at(i core.Instant) string {
	if i == 0 {
		return "never"
	}
	return i.Sub(p.start).String()
}

// changes writes the jobs whose states have changed.
func (p *player) changes() {
	now := p.states()
	all := maps.Clone(p.before)
	maps.Copy(all, now)
	for _, seq := range slices.Sorted(maps.Keys(all)) {
		if p.before[seq] != now[seq] {
			p.say("%d: %v > %v", seq, p.before[seq], now[seq])
		}
	}
	p.before = now
}

// recovered writes the jobs and their states after a start.
func (p *player) recovered() {
	for _, seq := range slices.Sorted(maps.Keys(p.before)) {
		p.say("%d: %v", seq, p.before[seq])
	}
}

// ask applies an operation that is not in the script.
func (p *player) ask(op core.Op) core.Reply {
	p.m.Apply(p.clk.Now(), p.looker, []core.Op{op})
	replies, needs := p.store.take(p.m, p.looker)
	w, needed := needs[0]
	if err := p.store.complete(&replies[0], w, needed); err != nil {
		panic(err)
	}
	return replies[0]
}

// look runs the commands that only show something; false: it is another command.
func (p *player) look(c *coretest.Command) (bool, error) {
	switch c.Word(0) {
	case "job":
		ref, err := p.ref(c.Word(1))
		if err != nil {
			return true, err
		}
		p.say("%s", p.reply(p.ask(&core.Inspect{Ref: ref})))
	case "ready", "scheduled":
		r := p.ask(&core.ListJobs{
			Queue: c.Word(1), State: map[string]core.State{"ready": core.Ready, "scheduled": core.Scheduled}[c.Word(0)],
			Brief: true,
		})
		p.say("%s", p.reply(r))
	case "queue":
		p.say("%s", p.reply(p.ask(&core.InspectQueue{Queue: c.Word(1)})))
	case "workers":
		for _, q := range p.ask(&core.InspectQueue{Queue: c.Word(1)}).Queues {
			p.say("%d", q.Workers)
		}
	case "queues":
		p.say("%s", p.reply(p.ask(&core.ListQueues{Prefix: c.Word(1)})))
	case "batch":
		var seq uint64
		if _, err := fmt.Sscan(c.Word(1), &seq); err != nil {
			return true, err
		}
		p.say("%s", p.reply(p.ask(&core.InspectBatch{Batch: seq})))
	case "stats":
		p.stats()
	case "deadline":
		p.say("%s", p.at(p.m.NextDeadline()))
	case "measures":
		for _, q := range p.ask(&core.InspectQueue{Queue: c.Word(1)}).Queues {
			p.say("in %.2f/s, out %.2f/s, oldest %v, expired %d, released %d, dead %d, cancelled %d, paused %d",
				q.InRate, q.OutRate, q.OldestAge,
				q.Counts.Expired, q.Counts.Released, q.Counts.Dead, total(q.Counts.Cancelled), total(q.Counts.Paused))
		}
	case "why":
		return true, p.why(c.Word(1))
	default:
		return false, nil
	}
	return true, nil
}

// total is the sum of a counter over all protocols.
func total(counts [len(core.Protocols)]uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// stats writes all counters that are not zero.
func (p *player) stats() {
	s := p.m.Stats()
	p.say("all: %s", totals(s.Totals))
	for _, proto := range core.Protocols {
		if t := totals(s.ByOrigin[proto]); t != "" {
			p.say("jobs of %v: %s", proto, t)
		}
		if t := totals(s.ByWorker[proto]); t != "" {
			p.say("clients of %v: %s", proto, t)
		}
		if n := s.LeasedBy[proto]; n != 0 {
			p.say("held by %v: %d", proto, n)
		}
	}
	for _, d := range s.History {
		p.say("%s: %d processed, %d failed", d.Date, d.Processed, d.Failed)
	}
}

func totals(t core.Totals) string {
	var b strings.Builder
	for _, x := range []struct {
		name string
		n    uint64
	}{
		{"submitted", t.Submitted},
		{"leased", t.Leased},
		{"done", t.Done},
		{"failed", t.Failed},
		{"dead", t.Dead},
		{"expired", t.Expired},
		{"cancelled", t.Cancelled},
		{"released", t.Released},
	} {
		if x.n != 0 {
			fmt.Fprintf(&b, " %s=%d", x.name, x.n)
		}
	}
	return strings.TrimPrefix(b.String(), " ")
}

// reply writes a reply without its zero fields.
func (p *player) reply(r core.Reply) string {
	var b strings.Builder
	b.WriteString(p.replyText(&r))
	if r.Commit != 0 {
		b.WriteString(" held")
	}
	return b.String()
}

func (p *player) replyText(r *core.Reply) string {
	switch r.Kind {
	case core.Failed:
		if r.Answer != nil && r.Index != 0 {
			return fmt.Sprintf("refused at %d: %v", r.Index, r.Err)
		}
		if r.Seq != 0 {
			return fmt.Sprintf("refused: %v, %d", r.Err, r.Seq)
		}
		if r.Job != nil {
			return fmt.Sprintf("refused: %v, %s", r.Err, r.Job.Queue)
		}
		return fmt.Sprintf("refused: %v", r.Err)
	case core.Accepted:
		if r.Answer != nil && len(r.Replies) > 0 {
			return p.replies(r)
		}
		text := "ok"
		if r.N > 1 {
			text += fmt.Sprintf(", %d jobs", r.N)
		}
		if r.CancelRequested {
			text += ", to stop"
		}
		if r.Lease.Epoch != 0 {
			text += fmt.Sprintf(", epoch %d", r.Lease.Epoch)
		}
		if r.Lease.LeaseFor != 0 {
			text += fmt.Sprintf(", for %v", r.Lease.LeaseFor)
		}
		return text
	case core.Submitted:
		if r.Existing {
			return fmt.Sprintf("joined %d", r.Seq)
		}
		return fmt.Sprintf("submitted %d", r.Seq)
	case core.NothingReady:
		return "nothing ready"
	case core.Inspected:
		return strings.Join(append([]string{p.info(r.Info)}, p.timeline(r.Info.Timeline)...), "\n")
	case core.Listed:
		if r.Answer != nil {
			return p.foundText(r)
		}
		lines := []string{}
		for i := range r.Jobs {
			lines = append(lines, p.info(&r.Jobs[i]))
		}
		if r.Cursor != 0 {
			lines = append(lines, "and more")
		}
		if len(lines) == 0 {
			return "none"
		}
		return strings.Join(lines, "\n")
	case core.Queues:
		lines := []string{}
		for i := range r.Queues {
			lines = append(lines, queueText(&r.Queues[i]))
		}
		if len(lines) == 0 {
			return "none"
		}
		return strings.Join(lines, "\n")
	case core.Counted:
		return totals(r.Stats.Totals)
	case core.MetaReply:
		return fmt.Sprintf("mark %q", r.Data)
	case core.Purged:
		if r.Cursor != 0 {
			return fmt.Sprintf("purged %d and more", r.N)
		}
		return fmt.Sprintf("purged %d", r.N)
	case core.BatchReply:
		return p.group(r)
	case core.EventReply:
		return p.eventText(&r.Event)
	case core.Answered:
		if r.Limits != nil {
			return p.limits(r.Answer)
		}
		if r.Policies != nil {
			return policies(r.Policies)
		}
		if r.Schedules != nil {
			return p.schedules(r.Schedules)
		}
		if r.Finished != nil {
			return p.finished(r.Finished)
		}
		return p.lookReply(r)
	case core.Assigned:
		return p.assigned(r)
	case core.TimedOut:
		return "timed out"
	case core.Woken:
		return "woken"
	case core.Progressed:
		return fmt.Sprintf("progress of %d: %s", r.Seq, p.progress(*r.Progress))
	case core.DataSent:
		return fmt.Sprintf("data of %d: %q", r.Seq, r.Data)
	case core.Warned:
		return fmt.Sprintf("warning of %d: %q", r.Seq, r.Data)
	case core.Ended:
		text := fmt.Sprintf("ended %d: %s", r.Seq, p.outcome(r.Outcome))
		if string(r.Data) != string(r.Outcome.Result) {
			text += fmt.Sprintf(", last %q", r.Data)
		}
		return text
	}
	return "unknown reply"
}

// replies writes the replies to a list of operations.
func (p *player) replies(r *core.Reply) string {
	all := make([]string, len(r.Replies))
	for i := range r.Replies {
		all[i] = p.replyText(&r.Replies[i])
	}
	return "all: " + strings.Join(all, "; ")
}

func (p *player) assigned(r *core.Reply) string {
	var b strings.Builder
	fmt.Fprintf(&b, "assigned %d attempt=%d", r.Seq, r.Lease.Attempts)
	if r.Lease.LeaseFor != 0 {
		fmt.Fprintf(&b, " for=%v", r.Lease.LeaseFor)
	}
	if len(r.Job.Body) > 0 {
		fmt.Fprintf(&b, " body=%q", r.Job.Body)
	}
	if r.Lease.Fails != 0 {
		fmt.Fprintf(&b, " fails=%d", r.Lease.Fails)
	}
	if r.Lease.Failure != nil {
		fmt.Fprintf(&b, " failure=(%s)", p.failure(r.Lease.Failure))
	}
	if r.N != 0 {
		fmt.Fprintf(&b, ", %d more", r.N)
	}
	return b.String()
}

func (p *player) progress(g core.Progress) string {
	text := fmt.Sprintf("%d/%d", g.Num, g.Den)
	if g.Text != "" {
		text += fmt.Sprintf(" %q", g.Text)
	}
	if len(g.Verbatim) > 0 {
		text += fmt.Sprintf(" as %q", g.Verbatim)
	}
	return text
}

func (p *player) failure(f *core.Failure) string {
	text := fmt.Sprintf("%s: %s, count %d, first %s", f.Type, f.Message, f.Count, p.at(f.FailedAt))
	if f.NextAt != 0 {
		text += ", next " + p.at(f.NextAt)
	}
	if f.Group != "" {
		text += ", group " + f.Group
	}
	return text
}

func (p *player) outcome(o *core.Outcome) string {
	text := "failed"
	if o.Success {
		text = "done"
	}
	text += map[core.Cause]string{
		core.LeaseRanOut: " as its lease ran out", core.Expired: " as it expired",
		core.Cancelled: " as it was cancelled",
	}[o.Cause]
	if len(o.Result) > 0 {
		text += fmt.Sprintf(" %q", o.Result)
	}
	if o.Failure != nil {
		text += fmt.Sprintf(" (%s)", p.failure(o.Failure))
	}
	return text
}

// info writes a JobInfo in one line.
func (p *player) info(i *core.JobInfo) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %v in %s", i.Seq, i.State, i.Queue)
	add := func(when bool, format string, args ...any) {
		if when {
			fmt.Fprintf(&b, " "+format, args...)
		}
	}
	add(i.Priority != 0, "priority=%d", i.Priority)
	add(i.ReadyAt != 0, "at=%s", p.at(i.ReadyAt))
	add(i.ExpiresAt != 0, "expires=%s", p.at(i.ExpiresAt))
	add(i.ChangedAt != i.ReadyAt && i.ChangedAt != i.LeasedAt, "changed=%s", p.at(i.ChangedAt))
	add(i.LeasedAt != 0, "leased=%s", p.at(i.LeasedAt))
	add(i.LeaseUntil != 0, "until=%s", p.at(i.LeaseUntil))
	add(i.Worker != "", "worker=%s", i.Worker)
	add(i.Version != "", "version=%s", i.Version)
	add(i.Attempts != 0, "attempts=%d", i.Attempts)
	add(i.Fails != 0, "fails=%d", i.Fails)
	add(i.Epoch != i.Attempts, "epoch=%d", i.Epoch)
	add(i.LostLeases != 0, "lost=%d", i.LostLeases)
	for _, n := range []struct {
		name string
		of   uint32
	}{
		{"releases", i.Tally.Releases},
		{"timeouts", i.Tally.Timeouts},
		{"burials", i.Tally.Burials},
		{"kicks", i.Tally.Kicks},
	} {
		add(n.of != 0, "%s=%d", n.name, n.of)
	}
	add(i.Tally.FirstLeasedAt != 0, "first-leased=%s", p.at(i.Tally.FirstLeasedAt))
	add(i.Watchers != 0, "watchers=%d", i.Watchers)
	add(i.MovedFrom != "" || i.MovedAfter != 0, "from=%s/%d", i.MovedFrom, i.MovedAfter)
	add(i.Requeued, "requeued")
	add(i.Rerun, "rerun")
	add(i.CancelRequestedAt != 0, "to-stop=%s", p.at(i.CancelRequestedAt))
	add(i.Broken, "broken")
	add(i.Ephemeral, "ephemeral")
	add(i.Unstored, "unstored")
	add(i.Progress.UpdatedAt != 0, "progress=%s", p.progress(i.Progress))
	if i.Failure != nil {
		add(true, "failure=(%s)", p.failure(i.Failure))
	}
	if i.Outcome != nil {
		add(true, "outcome=(%s)", p.outcome(i.Outcome))
	}
	add(i.Type != i.Queue, "type=%s", i.Type)
	if i.Job != nil {
		add(i.Job.ID != "", "id=%s", i.Job.ID)
		add(i.Job.Rares().RerunOf != 0, "rerun-of=%d", i.Job.Rares().RerunOf)
		add(len(i.Job.Body) > 0, "body=%q", i.Job.Body)
		add(len(i.Job.Tags) > 0, "tags=%s", strings.Join(i.Job.Tags, ","))
		add(len(i.Job.Attributes) > 0, "attributes=%q", i.Job.Attributes)
	}
	return b.String()
}

func queueText(q *core.QueueInfo) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q", q.Name)
	for _, x := range []struct {
		name string
		n    int
	}{
		{"high", q.High},
		{"normal", q.Normal},
		{"low", q.Low},
		{"scheduled", q.Scheduled},
		{"blocked", q.Blocked},
		{"leased", q.Leased},
		{"retrying", q.Retrying},
		{"done", q.Done},
		{"dead", q.Dead},
		{"workers", q.Registrations},
	} {
		if x.n != 0 {
			fmt.Fprintf(&b, " %s=%d", x.name, x.n)
		}
	}
	if q.Paused {
		b.WriteString(" paused")
		if q.PausedUntil != 0 {
			fmt.Fprintf(&b, "=%v", q.PausedFor)
		}
	}
	if q.Max != (core.QueueMax{}) || q.Throttle != (core.Throttle{}) {
		fmt.Fprintf(&b, " limits=%d/%d/%d", q.Max.High, q.Max.Normal, q.Max.Low)
	}
	if t := q.Throttle; t != (core.Throttle{}) {
		fmt.Fprintf(&b, " throttle=%d/%d", t.Leased, t.LeasedPerWorker)
		if t.SlotFor != 0 {
			fmt.Fprintf(&b, "/%v", t.SlotFor.Round(time.Millisecond))
		}
	}
	if q.Spent != nil {
		fmt.Fprintf(&b, " spent=%d/%s", q.Spent.Leases, q.Spent.To)
	}
	return b.String()
}

func (p *player) group(r *core.Reply) string {
	if r.Batch == nil {
		return fmt.Sprintf("batch %d", r.Seq)
	}
	return p.batchText(r.Batch)
}

func (p *player) batchText(g *core.BatchInfo) string {
	text := fmt.Sprintf("batch %d: total=%d pending=%d failed=%d", g.Number, g.Total, g.Pending, g.Failed)
	if g.Parent != 0 {
		text += fmt.Sprintf(" parent=%d", g.Parent)
	}
	if g.Closed {
		text += " committed"
	}
	state := []string{"pending", "enqueued", "done"}
	return text + " complete=" + state[g.Complete] + " success=" + state[g.Success]
}
