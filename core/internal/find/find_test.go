package find

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"broker/core"
	"broker/core/internal/table/tabletest"
)

// host is a machine without connections; batches has the parent of each batch.
type host struct{ batches map[uint64]uint64 }

// ConnName implements Host.
func (host) ConnName(uint32) string { return "" }

// IsConnName implements Host.
func (host) IsConnName(string) bool { return false }

// BatchParent implements Host.
func (h host) BatchParent(number uint64) (parent uint64, is bool) {
	parent, is = h.batches[number]
	return parent, is
}

// fixture is a table with jobs in all states.
type fixture struct {
	*testing.T
	table  *tabletest.Table
	jobs   []uint32
	host   host
	climbs Climbs
}

// setup adds jobs of several queues, types, tags, priorities and states, chosen by a seed.
func setup(t *testing.T, seed uint64, jobs int) *fixture {
	f := &fixture{T: t, table: tabletest.New()}
	rng := rand.New(rand.NewPCG(seed, 1))
	states := []core.State{
		core.Ready, core.Ready, core.Scheduled, core.Leased, core.Retrying, core.Dead, core.Done, core.Blocked,
	}
	for i := range jobs {
		j := &core.Job{
			Queue: fmt.Sprintf("q%d", rng.IntN(4)), Type: fmt.Sprintf("T%d", rng.IntN(3)),
			Priority: int64(rng.IntN(3) - 1),
			Tags:     []string{fmt.Sprintf("even:%v", i%2 == 0)}, Origin: core.Protocols[rng.IntN(len(core.Protocols))],
		}
		if state := states[rng.IntN(len(states))]; state == core.Scheduled || state == core.Retrying {
			j.ReadyAt = f.table.Now.Add(time.Duration(rng.IntN(50)) * time.Minute)
			f.add(j, state)
		} else {
			f.add(j, state)
		}
		f.table.Now = f.table.Now.Add(time.Second)
	}
	return f
}

func (f *fixture) add(j *core.Job, state core.State) {
	f.table.Queue(j.Queue)
	h, e := f.table.Add(j)
	f.table.Move(h, state)
	if state == core.Ready {
		f.table.QueueAt(e.Queue).Ready.Push(h, f.table.Before)
	}
	f.jobs = append(f.jobs, h)
}

// pages collects the numbers of all jobs that a Find has, in pages of a size.
func (f *fixture) pages(op core.Find, limit int, effort Effort) (seqs []uint64, count int, exact bool) {
	f.Helper()
	for range 10_000 {
		s, err := New(f.table.Table, f.host, effort, &f.climbs, &op)
		if err != nil {
			f.Fatalf("%+v: %v", op, err)
		}
		if op.Cursor == "" {
			count, exact = s.Count()
		}
		n := 0
		next, _ := s.Page(limit, func(h uint32) {
			n++
			seqs = append(seqs, f.table.At(h).Seq)
		})
		if n > limit {
			f.Fatalf("a page of %d jobs has %d", limit, n)
		}
		if next == "" {
			return seqs, count, exact
		}
		op.Cursor = next
	}
	f.Fatalf("%+v: the pages do not end", op)
	return nil, 0, false
}

// expect returns the same as pages by examining every job.
func (f *fixture) expect(
	op *core.Find, matches func(queue, typ, tag string, priority int64, state core.State) bool,
) (seqs []uint64) {
	all := slices.Clone(f.jobs)
	slices.SortFunc(all, func(a, b uint32) int {
		x, y := f.table.At(a), f.table.At(b)
		order := 0
		switch op.Order {
		case core.OrderCreated:
		case core.OrderQueue:
			order = cmp.Or(cmp.Compare(f.table.QueueAt(x.Queue).Name, f.table.QueueAt(y.Queue).Name),
				cmp.Compare(y.Priority(), x.Priority()),
				cmp.Compare(x.ReadyAt, y.ReadyAt))
		case core.OrderLeased:
			order = cmp.Compare(x.LeasedAt, y.LeasedAt)
		case core.OrderDue, core.OrderDied, core.OrderFinished:
			order = cmp.Compare(x.ReadyAt, y.ReadyAt)
		}
		order = cmp.Or(order, cmp.Compare(x.Seq, y.Seq))
		if op.Desc {
			return -order
		}
		return order
	})
	for _, h := range all {
		e := f.table.At(h)
		if slices.Contains(op.Order.States(), e.State) &&
			matches(f.table.QueueAt(e.Queue).Name, f.table.TypeOf(e), f.table.TagsOf(h)[0], e.Priority(), e.State) {
			seqs = append(seqs, e.Seq)
		}
	}
	return seqs
}

type filterCase struct {
	name    string
	filter  core.Filter
	matches func(queue, typ, tag string, priority int64, state core.State) bool
}

// filters are filters, each with a function that does the same.
func filters() []filterCase {
	one := int64(1)
	return []filterCase{
		{"all", core.Filter{}, func(_, _, _ string, _ int64, _ core.State) bool { return true }},
		{"queues", core.Filter{Queues: []string{"q1", "q3", "none"}}, func(q, _, _ string, _ int64, _ core.State) bool {
			return q == "q1" || q == "q3"
		}},
		{"queue prefix", core.Filter{QueuePrefix: "q2"}, func(q, _, _ string, _ int64, _ core.State) bool {
			return q == "q2"
		}},
		{
			"what the client may see",
			core.Filter{Within: []string{"q0", "q*2"}},
			func(q, _, _ string, _ int64, _ core.State) bool { return q == "q0" || q == "q2" },
		},
		{"types", core.Filter{Types: []string{"T0", "T2"}}, func(_, typ, _ string, _ int64, _ core.State) bool {
			return typ != "T1"
		}},
		{"tags", core.Filter{Tags: []string{"even:true"}}, func(_, _, tag string, _ int64, _ core.State) bool {
			return tag == "even:true"
		}},
		{
			"both tags",
			core.Filter{Tags: []string{"even:true", "even:false"}},
			func(_, _, _ string, _ int64, _ core.State) bool { return false },
		},
		{"priority", core.Filter{MinPriority: &one}, func(_, _, _ string, p int64, _ core.State) bool {
			return p >= 1
		}},
		{
			"queue, type and tag",
			core.Filter{Queues: []string{"q0"}, Types: []string{"T1"}, Tags: []string{"even:false"}},
			func(q, typ, tag string, _ int64, _ core.State) bool {
				return q == "q0" && typ == "T1" && tag == "even:false"
			},
		},
		{"no such type", core.Filter{Types: []string{"none"}}, func(_, _, _ string, _ int64, _ core.State) bool {
			return false
		}},
	}
}

// orders are all orders of lists.
var orders = []core.Order{
	core.OrderCreated, core.OrderQueue, core.OrderDue, core.OrderLeased, core.OrderDied, core.OrderFinished,
}

func TestPagesHaveEveryMatchOnceAndInOrder(t *testing.T) {
	t.Parallel()
	f := setup(t, 1, 300)
	for _, test := range filters() {
		for _, order := range orders {
			for _, desc := range []bool{false, true} {
				op := core.Find{Filter: test.filter, Order: order, Desc: desc}
				want := f.expect(&op, test.matches)
				have, count, exact := f.pages(op, 7, UsualEffort)
				if !slices.Equal(have, want) {
					t.Errorf("%s, order %d, descending %v: jobs %v, want %v", test.name, order, desc, have, want)
				}
				if states := len(order.States()); order == core.OrderCreated && (count != len(want) || !exact) {
					t.Errorf("%s: counted %d of %d, exact %v, %d states", test.name, count, len(want), exact, states)
				}
			}
		}
	}
}

func TestLittleEffortFindsTheSameInMorePages(t *testing.T) {
	t.Parallel()
	f := setup(t, 2, 200)
	for _, test := range filters() {
		op := core.Find{Filter: test.filter}
		if have, _, _ := f.pages(op, 5, Effort{Look: 3, Gather: 2}); !slices.Equal(have, f.expect(&op, test.matches)) {
			t.Errorf("%s: jobs %v", test.name, have)
		}
	}
}

func TestFailuresOfAGroupAndATypeAreCountedExactly(t *testing.T) {
	t.Parallel()
	f := setup(t, 3, 2000)
	grouped := map[uint64]string{}
	for i, h := range f.jobs {
		if e := f.table.At(h); (e.State == core.Dead || e.State == core.Retrying) && i%3 > 0 {
			grouped[e.Seq] = fmt.Sprintf("G%d", i%3)
			f.table.JoinGroupNamed(h, e, grouped[e.Seq])
		}
	}
	little := Effort{Look: 100, Gather: 2}
	dead := []core.State{core.Dead}
	for _, filter := range []core.Filter{
		{States: dead, FailureGroup: "G1", Types: []string{"T1"}},
		{States: dead, NoFailureGroup: true, Types: []string{"T0", "T2"}},
		{States: dead, FailureGroup: "G2", Queues: []string{"q1"}},
		{States: dead, Types: []string{"T1"}, Queues: []string{"q0", "q3"}},
		{States: []core.State{core.Dead, core.Retrying}, FailureGroup: "G1"},
		{States: []core.State{core.Retrying}, NoFailureGroup: true},
	} {
		op := core.Find{Filter: filter}
		seqs, count, exact := f.pages(op, 1000, Effort{Look: 10_000, Gather: 1000})
		for _, seq := range seqs {
			if group := grouped[seq]; filter.FailureGroup != "" && group != filter.FailureGroup ||
				filter.NoFailureGroup && group != "" {
				t.Errorf("%+v: job %d of group %q matches", filter, seq, group)
			}
		}
		if !exact || count != len(seqs) {
			t.Errorf("%+v: counted %d of %d, exact %v", filter, count, len(seqs), exact)
		}
		if _, count, exact := f.pages(op, 1000, little); !exact || count != len(seqs) {
			t.Errorf("%+v: with little effort counted %d of %d, exact %v", filter, count, len(seqs), exact)
		}
	}
}

func TestStatesThatAnOrderDoesNotHaveAreRefused(t *testing.T) {
	t.Parallel()
	f := setup(t, 1, 1)
	for _, op := range []core.Find{
		{Order: core.OrderDied, Filter: core.Filter{States: []core.State{core.Ready}}},
		{Order: core.OrderFinished + 1},
		{Cursor: "no cursor"},
	} {
		if _, err := New(f.table.Table, host{}, UsualEffort, new(Climbs), &op); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%+v: %v", op, err)
		}
	}
}

func TestListOmitsJobsPlacedAfterItBegan(t *testing.T) {
	t.Parallel()
	f := setup(t, 3, 0)
	for range 4 {
		f.add(&core.Job{Queue: "q"}, core.Dead)
		f.table.Now++
	}
	op := core.Find{Order: core.OrderDied}
	s, err := New(f.table.Table, host{}, UsualEffort, new(Climbs), &op)
	if err != nil {
		t.Fatal(err)
	}
	op.Cursor, _ = s.Page(2, func(uint32) {})
	f.table.Now++
	f.add(&core.Job{Queue: "q"}, core.Dead)
	if have, _, _ := f.pages(op, 10, UsualEffort); !slices.Equal(have, []uint64{3, 4}) {
		t.Errorf("the second page has %v", have)
	}
}

// FuzzCursor: every cursor is refused, or starts a list that ends.
func FuzzCursor(f *testing.F) {
	f.Add(uint8(0), false, "AQAAAAAAAAE")
	f.Add(uint8(1), true, "AQEBAAACAAFxMQ")
	f.Fuzz(func(t *testing.T, order uint8, desc bool, cursor string) {
		x := setup(t, 4, 30)
		op := core.Find{Order: core.Order(order), Desc: desc, Cursor: cursor}
		s, err := New(x.table.Table, host{}, UsualEffort, new(Climbs), &op)
		if err != nil {
			return
		}
		seen := map[uint32]bool{}
		if next, _ := s.Page(len(x.jobs), func(h uint32) {
			if seen[h] {
				t.Errorf("job %d is found twice", h)
			}
			seen[h] = true
		}); next != "" {
			t.Errorf("a page with room for all jobs has a cursor behind it: %q", next)
		}
	})
}
