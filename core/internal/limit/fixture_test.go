package limit

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/table/tabletest"
)

// fixture has the limits of a table; the test is their Host.
type fixture struct {
	*testing.T
	table   *tabletest.Table
	rules   *Rules
	offered map[string]bool // queues of which a job may be handed out, since the last look
	leased  []uint32
}

// QueueFor implements Host.
func (f *fixture) QueueFor(name string) uint32 {
	f.queue(name)
	return f.table.QueueNumber(name)
}

// Offer implements Host.
func (f *fixture) Offer(queue uint32) bool {
	f.offered[f.rules.queues[queue].Name] = true
	return true
}

// DropIdle implements Host.
func (f *fixture) DropIdle(uint32) {}

// Client implements Host.
func (f *fixture) Client(slot uint32) core.ClientID { return core.ClientID(slot) }

// HolderName implements Host.
func (f *fixture) HolderName(e *table.Entry) string { return "w" + strconv.Itoa(int(e.Holder)) }

func setup(t *testing.T) *fixture {
	f := &fixture{T: t, table: tabletest.New(), offered: map[string]bool{}}
	f.rules = New(f.table.Table, f, 0)
	return f
}

// queue finds or makes a queue.
func (f *fixture) queue(name string) *Queue {
	if n := f.table.QueueNumber(name); n != 0 {
		return f.rules.queues[n]
	}
	q := &Queue{}
	q.Name = name
	f.rules.AddQueue(f.table.AddQueue(&q.Queue), q)
	return q
}

// limit sets a limit.
func (f *fixture) limit(l core.Limit) {
	f.Helper()
	if _, err := f.rules.Put(&l); err != nil {
		f.Fatal(err)
	}
}

// share sets how a queue shares its workers between keys.
func (f *fixture) share(s core.Sharing) {
	f.Helper()
	if _, err := f.rules.Share(&s); err != nil {
		f.Fatal(err)
	}
}

// submit makes ready jobs, each of a text such as "q" or "q type=T tag=customer:7 cost=2".
func (f *fixture) submit(jobs ...string) {
	for _, text := range jobs {
		words := strings.Fields(text)
		j := &core.Job{Queue: words[0]}
		for _, word := range words[1:] {
			switch name, value, _ := strings.Cut(word, "="); name {
			case "type":
				j.Type = value
			case "tag":
				j.Tags = append(j.Tags, value)
			case "priority":
				n, _ := strconv.Atoi(value)
				j.Priority = int64(n)
			case "cost":
				n, _ := strconv.Atoi(value)
				j.Cost = uint32(n)
			default:
				f.Fatalf("no member of a job: %s", word)
			}
		}
		f.queue(j.Queue)
		h, e := f.table.Add(j)
		f.rules.JoinLaneOf(h, e, j)
		f.ready(h)
	}
}

func (f *fixture) ready(h uint32) {
	e := f.table.At(h)
	f.table.Move(h, core.Ready)
	f.rules.PushReady(f.rules.queues[e.Queue], h)
}

// next leases the next job of a queue to a client; zero: limits allow none.
func (f *fixture) next(queue string, client int) uint32 {
	q := f.queue(queue)
	who := Asker{Client: core.ClientID(client), Lease: &core.Lease{Holder: core.HeldByConn}}
	if q.Reached() || !f.rules.WorkerBelow(q, who) {
		return 0
	}
	var h uint32
	switch {
	case q.HasLanes():
		h, _ = f.rules.OpenFront(q, who)
	case q.Open().Len() > 0:
		h = q.Open().Front()
	}
	if h == 0 || !f.rules.Fits(q, h) {
		return 0
	}
	e := f.table.At(h)
	f.rules.RemoveReady(q, h)
	e.Holder, e.HolderKind = uint32(client), core.HeldByConn
	e.Set(table.Held)
	f.table.Move(h, core.Leased)
	f.rules.TakeSlot(h, e, uint64(client))
	if q.DistinguishesJobs() {
		f.rules.Leased(q, h, e.Seq)
	}
	f.leased = append(f.leased, h)
	return h
}

// want leases jobs of a queue until limits allow none, and compares their numbers.
func (f *fixture) want(queue string, client int, seqs ...uint64) {
	f.Helper()
	var have []uint64
	for h := f.next(queue, client); h != 0; h = f.next(queue, client) {
		have = append(have, f.table.At(h).Seq)
	}
	if len(have) != len(seqs) {
		f.Errorf("client %d gets %v of %s, want %v", client, have, queue, seqs)
	} else {
		for i := range have {
			if have[i] != seqs[i] {
				f.Errorf("client %d gets %v of %s, want %v", client, have, queue, seqs)
				break
			}
		}
	}
	f.check()
}

// giveUp takes a leased job from its holder.
func (f *fixture) giveUp(h uint32) *table.Entry {
	for i := range f.leased {
		if f.leased[i] == h {
			f.leased = append(f.leased[:i], f.leased[i+1:]...)
			break
		}
	}
	e := f.table.At(h)
	e.Clear(table.Held)
	f.rules.FreeSlot(h, e)
	return e
}

// finish ends the leased jobs with these numbers.
func (f *fixture) finish(seqs ...uint64) {
	for _, seq := range seqs {
		h := f.table.Handle(seq)
		e := f.giveUp(h)
		f.rules.LeaveOrder(h, e)
		f.rules.ForgetLimits(h)
		f.table.Unlist(h, e)
		f.table.Remove(h)
		if f.table.Live == 0 {
			f.rules.Drained()
		}
	}
	f.check()
}

// advance lets time pass, and handles due deadlines.
func (f *fixture) advance(d time.Duration) {
	f.table.Now = f.table.Now.Add(d)
	for o, due := f.table.Timers.PopDue(f.table.Now); due; o, due = f.table.Timers.PopDue(f.table.Now) {
		switch o.Kind {
		case table.TimerBucket:
			f.rules.BucketTimeout(o.Handle)
		case table.TimerSlot, table.TimerTypeSlot, table.TimerKeySlot:
			f.rules.SlotTimeout(o.Handle, o.Kind)
		case table.TimerSort:
			f.rules.SortTimeout()
		default:
			f.Errorf("a deadline of another kind: %d", o.Kind)
		}
	}
	f.check()
}

// check verifies all counters.
func (f *fixture) check() {
	f.Helper()
	c := f.rules.NewCheck(f.Errorf)
	f.table.EachJob(c.Job)
	if have := c.End(); have != f.table.Timers.Len() {
		f.Errorf("%d deadlines, %d are used", f.table.Timers.Len(), have)
	}
}
