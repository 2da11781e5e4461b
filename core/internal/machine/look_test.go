package machine_test

import (
	"fmt"
	"strings"
	"time"

	"broker/core"
)

// lookOp returns the operation of a command that lists or finds something; nil: it is another command.
func (r *reader) lookOp(verb string, tag uint64) core.Op {
	switch verb {
	case "list-clients":
		return &core.ListClients{
			Tag: tag, Protocol: r.protocol(), Limit: int(r.number("limit")), After: r.clientID(r.Option("after")),
		}
	case "list-workers":
		return &core.ListWorkers{Tag: tag, Cursor: uint64(r.number("cursor")), Limit: int(r.number("limit"))}
	case "list-batches":
		return &core.ListBatches{
			Tag: tag, From: uint64(r.number("from")), Oldest: r.flag("oldest"), Limit: int(r.number("limit")),
		}
	case "disconnect":
		return &core.DisconnectClient{Tag: tag, Client: r.clientID(r.Word(2))}
	case "name":
		return &core.NameClient{Name: r.Word(2)}
	case "subscribe":
		return r.subscribe(tag)
	case "read-series":
		op := &core.ReadSeries{Tag: tag, Queue: r.Word(2), Rest: r.flag("rest"), From: r.instant("from")}
		op.Step = map[string]core.Step{"2s": core.Step2s, "1m": core.Step1m, "1h": core.Step1h}[r.Option("step")]
		return op
	case "read-histograms":
		return &core.ReadHistograms{Tag: tag, Queue: r.Word(2), Type: r.Option("type"), Rest: r.flag("rest")}
	case "find":
		return r.find(tag)
	}
	return nil
}

// subscribe reads the options of a Subscribe; kinds are written with dashes.
func (r *reader) subscribe(tag uint64) core.Op {
	op := &core.Subscribe{
		Tag: tag, QueuePrefix: r.Option("prefix"), Job: uint64(r.number("job")), Buffer: int(r.number("buffer")),
		Traced: r.flag("traced"),
	}
	for _, x := range []struct {
		name string
		into *[]string
	}{{"queues", &op.Queues}, {"types", &op.Types}} {
		if v := r.Option(x.name); v != "" {
			*x.into = strings.Split(v, ",")
		}
	}
	for _, name := range strings.Split(r.Option("kinds"), ",") {
		for _, k := range core.EventKinds {
			if strings.ReplaceAll(k.String(), " ", "-") == name {
				op.Kinds = append(op.Kinds, k)
			}
		}
	}
	return op
}

// eventText writes an event.
func (p *player) eventText(ev *core.Event) string {
	text := fmt.Sprintf("event %d: %v", ev.Number, ev.Kind)
	if ev.Seq != 0 {
		text += fmt.Sprintf(" %d (%s of %s)", ev.Seq, ev.Type, ev.Queue)
	} else if ev.Queue != "" {
		text += " " + ev.Queue
	}
	text += " by " + ev.Protocol.String()
	for _, x := range []struct{ name, value string }{{"worker", ev.Worker}, {"detail", ev.Detail}} {
		if x.value != "" {
			text += fmt.Sprintf(" %s=%q", x.name, x.value)
		}
	}
	if ev.Trace != "" {
		text += fmt.Sprintf(" trace=%q", ev.Trace)
		if ev.Since != 0 {
			text += " since " + p.at(ev.Since)
		}
	}
	if ev.Over {
		text += " over"
	}
	if ev.Dropped > 0 {
		text += fmt.Sprintf(", %d dropped before", ev.Dropped)
	}
	return text
}

var jobOrders = map[string]core.Order{
	"": core.OrderCreated, "created": core.OrderCreated, "queue": core.OrderQueue, "due": core.OrderDue,
	"leased": core.OrderLeased, "died": core.OrderDied, "finished": core.OrderFinished,
}

// find reads the options of a Find; -next continues the last one.
func (r *reader) find(tag uint64) core.Op {
	list := func(name string) []string {
		if v := r.Option(name); v != "" {
			return strings.Split(v, ",")
		}
		return nil
	}
	span := func(name string) core.Range {
		return core.Range{From: r.instant(name + "-from"), To: r.instant(name + "-to")}
	}
	op := &core.Find{
		Tag: tag, Order: jobOrders[r.Option("order")], Desc: r.flag("desc"), Limit: int(r.number("limit")), Brief: true,
		WithCount: r.flag("count"), WithFailures: int(r.number("failures")), Cursor: r.Option("cursor"),
		Filter: core.Filter{
			Queues: list("queues"), QueuePrefix: r.Option("prefix"), Types: list("types"), Worker: r.Option("worker"),
			FailureGroup: r.Option("group"), Batch: uint64(r.number("batch")), Parent: uint64(r.number("parent")),
			Workflow:       uint64(r.number("workflow")),
			NoFailureGroup: r.flag("no-group"), UniqueKeys: list("unique"), HoldsKey: r.flag("holds-key"),
			CancelRequested: r.flag("to-stop"), Tags: list("tags"), Created: span("created"), Due: span("due"),
			Died: span("died"), Finished: span("finished"), Version: r.Option("version"),
			NoVersion: r.flag("no-version"),
		},
	}
	for _, name := range list("states") {
		for _, s := range core.States {
			if s.String() == name {
				op.Filter.States = append(op.Filter.States, s)
			}
		}
	}
	if r.Option("of") != "" {
		op.Filter.Origins = []core.Protocol{r.protocol()}
	}
	for name, bound := range map[string]**int64{
		"min-priority": &op.Filter.MinPriority, "max-priority": &op.Filter.MaxPriority,
	} {
		if r.Option(name) != "" {
			n := int64(r.number(name))
			*bound = &n
		}
	}
	if r.flag("next") {
		op.Cursor = r.p.cursor
	}
	return op
}

// seriesText writes the points of a series that are not zero.
func (p *player) seriesText(s *core.Series) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d points", len(s.Points))
	for i := range s.Points {
		x := &s.Points[i]
		if *x == (core.Point{}) {
			continue
		}
		fmt.Fprintf(&b, "\nfrom %s:", p.at(s.From.Add(time.Duration(i)*s.Step.Span())))
		for _, n := range []struct {
			name string
			n    uint64
		}{
			{"submitted", x.Submitted},
			{"done", x.Done},
			{"failed", x.Failed},
			{"ready", uint64(x.Ready)},
			{"leased", uint64(x.Leased)},
		} {
			if n.n != 0 {
				fmt.Fprintf(&b, " %s=%d", n.name, n.n)
			}
		}
		if x.OldestAge != 0 {
			fmt.Fprintf(&b, " oldest=%v", x.OldestAge.Round(time.Second/10))
		}
		for _, q := range []struct {
			name string
			d    [3]time.Duration
		}{
			{"wait", [...]time.Duration{x.WaitP50, x.WaitP95, x.WaitP99}},
			{"run", [...]time.Duration{x.RunP50, x.RunP95, x.RunP99}},
		} {
			if q.d != [3]time.Duration{} {
				fmt.Fprintf(&b, " %s=%v/%v/%v", q.name, q.d[0].Round(time.Second/10), q.d[1].Round(time.Second/10),
					q.d[2].Round(time.Second/10))
			}
		}
	}
	return b.String()
}

func histogramText(h *core.Histogram) string {
	text := fmt.Sprintf(" %v in all:", h.Sum())
	for _, b := range h.Buckets() {
		text += fmt.Sprintf(" %d from %v to %v", b.Count, b.From.Round(time.Millisecond), b.To.Round(time.Millisecond))
	}
	return text
}

// foundText writes a page of jobs, each by its number only.
func (p *player) foundText(r *core.Reply) string {
	var b strings.Builder
	for i := range r.Jobs {
		fmt.Fprintf(&b, "%d ", r.Jobs[i].Seq)
	}
	if len(r.Jobs) == 0 {
		b.WriteString("none ")
	}
	p.cursor = r.NextCursor
	if r.NextCursor != "" {
		b.WriteString("and more ")
	}
	if r.Stopped {
		b.WriteString("stopped ")
	}
	if r.CountExact {
		fmt.Fprintf(&b, "of %d", r.Count)
	} else if r.Count > 0 {
		fmt.Fprintf(&b, "of at least %d", r.Count)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, " %q of %s: %d", f.Group, f.Type, f.Jobs)
		for _, v := range f.Versions {
			fmt.Fprintf(&b, " (%q: %d from %s to %s, %v)", v.Version, v.Jobs, p.at(v.FirstHour), p.at(v.LastHour),
				v.Died[max(0, len(v.Died)-2):])
		}
	}
	return strings.TrimSuffix(b.String(), " ")
}

// clientID is the number of a client of the script, zero if there is none of that name.
func (r *reader) clientID(name string) core.ClientID {
	for _, a := range r.p.clients {
		if a.name == name {
			return a.id
		}
	}
	return 0
}

// lookReply writes the reply to a lookOp.
func (p *player) lookReply(r *core.Reply) string {
	var lines []string
	for i := range r.Clients {
		lines = append(lines, p.clientText(&r.Clients[i]))
	}
	for _, w := range r.Workers {
		lines = append(lines, fmt.Sprintf("worker %s:%s", w.Name, p.heldText(w.Held)))
	}
	for i := range r.Batches {
		lines = append(lines, p.batchText(&r.Batches[i]))
	}
	if r.NextBatch != 0 {
		lines = append(lines, fmt.Sprint("and more from ", r.NextBatch))
	}
	if r.Series != nil {
		lines = append(lines, p.seriesText(r.Series))
	}
	if h := r.Histograms; h.Wait != nil {
		lines = append(lines, "waited"+histogramText(h.Wait), "ran"+histogramText(h.Run))
	}
	if r.NextClient != 0 || r.NextWorker != 0 {
		lines = append(lines, "and more")
	}
	if len(lines) == 0 {
		return "none"
	}
	return strings.Join(lines, "\n")
}

func (p *player) clientText(i *core.ClientInfo) string {
	text := fmt.Sprintf("%v client at %q since %s", i.Protocol, i.Address, p.at(i.OpenedAt))
	for _, x := range []struct{ name, value string }{
		{"named", i.Name}, {"worker", i.Worker}, {"for", strings.Join(i.Queues, " ")},
	} {
		if x.value != "" {
			text += fmt.Sprintf(" %s %s", x.name, x.value)
		}
	}
	if i.Parked {
		text += " parked"
	}
	if i.Sleeping {
		text += " sleeping"
	}
	return text + p.heldText(i.Held)
}

func (p *player) heldText(held []core.HeldJob) (text string) {
	for _, j := range held {
		text += fmt.Sprintf(" (%d %s of %s by %v, lease %d from %s to %s)",
			j.Seq, j.Type, j.Queue, j.Protocol, j.Epoch, p.at(j.LeasedAt), p.at(j.LeaseUntil))
	}
	return text
}

// why writes why a job waits, and other data that lists of jobs lack.
func (p *player) why(name string) error {
	ref, err := p.ref(name)
	if err != nil {
		return err
	}
	i := p.ask(&core.Inspect{Ref: ref, Brief: true, Dependents: true}).Info
	if i == nil {
		return fmt.Errorf("no job %s", name)
	}
	text := fmt.Sprintf("%d waits for %v", i.Seq, i.Reason)
	if len(i.Waiting) > 0 {
		text += fmt.Sprintf(" %v", i.Waiting)
	}
	if i.Key != "" {
		text += fmt.Sprintf(" behind %d of key %q", i.Behind, i.Key)
	}
	p.say("%s, dependents=%d children=%d epoch=%d bytes=%d", text, i.Dependents, i.Children, i.Epoch, i.BodyBytes)
	return nil
}
