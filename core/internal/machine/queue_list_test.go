package machine

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"broker/core"
)

// manyQueues is a machine with so many queues, and a client.
func manyQueues(tb testing.TB, queues int) (*Machine, core.ClientID) {
	tb.Helper()
	m := New(Options{StartedAt: 1 << 50})
	id := m.OpenClient(1<<50, core.ClientOptions{})
	for i := range queues {
		m.Apply(1<<50, id, []core.Op{&core.CreateQueue{Queue: fmt.Sprintf("queue %06d", i*7919%queues)}})
		m.Take(id, nil)
	}
	return m, id
}

func pageOf(m *Machine, id core.ClientID, op core.ListQueues) (names []string) {
	m.Apply(1<<50, id, []core.Op{&op})
	for _, q := range m.Take(id, nil)[0].Queues {
		names = append(names, q.Name)
	}
	return names
}

func TestPagesOfQueuesFollowEachOther(t *testing.T) {
	t.Parallel()
	m, id := manyQueues(t, 1000)
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	all := pageOf(m, id, core.ListQueues{})
	if len(all) != 1000 {
		t.Fatalf("%d queues", len(all))
	}
	for _, prefix := range []string{"", "queue", "queue 0002", "queue 00099", "a", "z"} {
		var want, byOffset, byName []string
		for _, name := range all {
			if strings.HasPrefix(name, prefix) {
				want = append(want, name)
			}
		}
		for len(byOffset) < len(want) {
			byOffset = append(byOffset,
				pageOf(m, id, core.ListQueues{Prefix: prefix, Offset: len(byOffset), Limit: 7})...)
		}
		for after := ""; ; after = byName[len(byName)-1] {
			page := pageOf(m, id, core.ListQueues{Prefix: prefix, After: after, Limit: 11})
			if len(page) == 0 {
				break
			}
			byName = append(byName, page...)
		}
		if fmt.Sprint(byOffset) != fmt.Sprint(want) || fmt.Sprint(byName) != fmt.Sprint(want) {
			t.Errorf("prefix %q: %d queues by offset and %d by name, want %d", prefix, len(byOffset), len(byName),
				len(want))
		}
	}
	if rest := pageOf(m, id, core.ListQueues{Offset: 1000}); len(rest) != 0 {
		t.Errorf("%d queues behind the last", len(rest))
	}
}

// TestNewQueueLeavesTheOthersSorted counts allocations: sorting the names again would need one as long as the list.
func TestNewQueueLeavesTheOthersSorted(t *testing.T) {
	m, id := manyQueues(t, 20_000)
	ops := []core.Op{
		&core.CreateQueue{Queue: "queue 000000 a"}, &core.ListQueues{Limit: 1},
		&core.DropQueue{Queue: "queue 000000 a"},
	}
	var replies []core.Reply
	bytes := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			m.Apply(1<<50, id, ops)
			replies = m.Take(id, replies[:0])
		}
	}).AllocedBytesPerOp()
	if bytes > 10_000 {
		t.Errorf("a new queue and a row cost %d bytes of memory beside 20,000 queues", bytes)
	}
}

func TestDropQueueCanIgnoreCase(t *testing.T) {
	t.Parallel()
	m, id := manyQueues(t, 100)
	for _, c := range []struct {
		name string
		want bool
	}{
		{"QUEUE 000042", true},
		{"QUEUE 000042", false},
		{"qUeUe 000099", true},
		{"queue 00004", false},
		{"", false},
		{"ZZZ", false},
	} {
		m.Apply(1<<50, id, []core.Op{&core.DropQueue{Queue: c.name, FoldCase: true}})
		if r := m.Take(id, nil)[0]; (r.Kind == core.Accepted) != c.want {
			t.Errorf("drop of %q: %+v", c.name, r)
		}
	}
	if err := m.Check(); err != nil {
		t.Error(err)
	}
}

// TestQueueIsDroppedInPages drops a queue with many jobs in all states; other queues have blocked jobs too.
func TestQueueIsDroppedInPages(t *testing.T) {
	t.Parallel()
	l := newLimited()
	const jobs = 300
	for i := range jobs {
		l.do(&core.Submit{Job: &core.Job{Queue: "q", Priority: int64(i % 3)}})
		l.do(&core.Submit{Job: &core.Job{Queue: "q", ReadyAt: 1 << 50}})                          // scheduled
		l.do(&core.Submit{Job: &core.Job{Queue: "q", MaxFails: 3, Backoff: core.BackoffFaktory}}) // retrying
		l.do(&core.Fail{Ref: core.Ref{Seq: uint64(i)*5 + 3}, Authority: core.ByAnyone})
		l.do(&core.Submit{Job: &core.Job{Queue: "q", After: []uint64{uint64(i)*5 + 2}}})
		l.do(&core.Submit{Job: &core.Job{Queue: "other", After: []uint64{uint64(i)*5 + 1, uint64(i)*5 + 4}}})
	}
	left := func() int {
		return l.do(&core.ReadStats{}).Stats.Jobs[core.Blocked] + l.table.InState[core.Ready] +
			l.table.InState[core.Scheduled] + l.table.InState[core.Retrying]
	}
	pages := 0
	for cursor, before := uint64(0), left(); pages == 0 || cursor != 0; pages++ {
		r := l.do(&core.DropQueue{Queue: "q", Limit: 100, Cursor: cursor})
		if r.Kind != core.Accepted {
			t.Fatal(r.Err)
		}
		if gone := before - left(); gone > 100 || gone == 0 && r.Cursor != 0 {
			t.Fatalf("page %d removed %d jobs", pages, gone)
		}
		cursor, before = r.Cursor, left()
		if err := l.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if pages != 4*jobs/100 || left() != jobs || l.table.QueueNumber("q") != 0 {
		t.Errorf("%d pages, %d jobs left, queue %d", pages, left(), l.table.QueueNumber("q"))
	}
	if r := l.do(&core.DropQueue{Queue: "q"}); r.Err != core.ErrNoQueue { //nolint:errorlint // as it is
		t.Errorf("dropped again: %+v", r)
	}
}

// BenchmarkListQueues shows a page of many queues, beside a new queue each time.
func BenchmarkListQueues(b *testing.B) {
	m, id := manyQueues(b, 200_000)
	for _, offset := range []int{0, 199_000} {
		b.Run(fmt.Sprint("offset ", offset), func(b *testing.B) {
			var replies []core.Reply
			ops := []core.Op{
				&core.CreateQueue{Queue: "queue 000000 a"}, &core.ListQueues{Offset: offset, Limit: 1},
				&core.DropQueue{Queue: "Queue 000000 A", FoldCase: true},
			}
			for b.Loop() {
				m.Apply(1<<50, id, ops)
				replies = m.Take(id, replies[:0])
			}
		})
	}
}

func TestQueueValuesMatchTheQueues(t *testing.T) {
	t.Parallel()
	m, id := manyQueues(t, 700)
	const now = 1 << 50
	do := func(op core.Op) core.Reply {
		m.Apply(now, id, []core.Op{op})
		return m.Take(id, nil)[0]
	}
	for i, name := range []string{"queue 000003", "queue 000500", "queue 000500"} {
		do(&core.Submit{Tag: 1, Job: &core.Job{Queue: name, Priority: int64(i - 1)}})
		do(&core.Submit{Tag: 1, Job: &core.Job{Queue: name, ReadyAt: now + 1000}})
	}
	do(&core.Lease{Tag: 1, Queues: []string{"queue 000500"}, Holder: core.HeldByWorker, Worker: "w"})
	for of, measure := range map[core.QueueMeasure]func(*core.QueueInfo) int{
		core.QueueReady:     (*core.QueueInfo).Ready,
		core.QueueScheduled: func(q *core.QueueInfo) int { return q.Scheduled },
		core.QueueLeased:    func(q *core.QueueInfo) int { return q.Leased },
		core.QueueRetrying:  func(q *core.QueueInfo) int { return q.Retrying },
		core.QueueBlocked:   func(q *core.QueueInfo) int { return q.Blocked },
		core.QueueDone:      func(q *core.QueueInfo) int { return q.Done },
		core.QueueDead:      func(q *core.QueueInfo) int { return q.Dead },
		core.QueueNextAt: func(q *core.QueueInfo) int {
			if q.NextEnqueuedAt == 0 {
				return math.MaxInt64
			}
			return int(q.NextEnqueuedAt)
		},
	} {
		var want, got []core.QueueValue
		for _, q := range do(&core.ListQueues{}).Queues {
			want = append(want, core.QueueValue{Name: q.Name, Value: int64(measure(&q))})
		}
		for after := ""; ; after = got[len(got)-1].Name {
			page := do(&core.ListQueueValues{After: after, Limit: 300, Of: of}).QueueValues
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("measure %d of %d queues is not that of the %d", of, len(got), len(want))
		}
	}
	if page := do(&core.ListQueueValues{Prefix: "queue 0005"}).QueueValues; len(page) != 100 ||
		page[0] != (core.QueueValue{Name: "queue 000500", Value: 1}) {
		t.Errorf("%d queues with the prefix: %v", len(page), page)
	}
}
