package service

import (
	"fmt"
	"slices"
	"testing"

	"broker/core"
	"broker/core/engine"
)

// makeQueues makes n queues; every thousandth has more than one job.
func makeQueues(t testing.TB, e *engine.Engine, n int) {
	t.Helper()
	client := e.Open(core.ClientOptions{Protocol: core.HTTP, Wake: func() {}})
	defer e.Close(client)
	for i := range n {
		jobs := 1
		if i%1000 == 0 {
			jobs = 2 + i/1000
		}
		for range jobs {
			e.Do(client, []core.Op{&core.Submit{Job: &core.Job{Queue: fmt.Sprintf("queue-%06d", i)}}}, nil)
		}
	}
}

// countingBroker counts the queues that are read completely.
type countingBroker struct {
	core.Broker
	full int
}

// Do implements core.Broker.
func (b *countingBroker) Do(id core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	before := len(into)
	into = b.Broker.Do(id, ops, into)
	for _, r := range into[before:] {
		b.full += len(r.Queues)
	}
	return into
}

func TestSortedPageReadsOnlyItsOwnQueues(t *testing.T) {
	t.Parallel()
	s, e := setup(t)
	makeQueues(t, e, 3500)
	counting := &countingBroker{Broker: e}
	s.o.Broker = counting
	for sort, want := range map[string]string{
		"-ready": "[queue-003000 queue-002000]", "ready": "[queue-000001 queue-000002]",
		"-name": "[queue-003499 queue-003498]",
		"dead":  "[queue-000000 queue-000001]", "name": "[queue-000000 queue-000001]",
	} {
		counting.full = 0
		list, cursor, err := s.Queues(t.Context(), everyone, QueueFilter{Sort: sort, Limit: 2})
		names := []string{}
		for _, q := range list {
			names = append(names, q.Name)
		}
		if err != nil || fmt.Sprint(names) != want || cursor == "" || counting.full > 3 {
			t.Errorf("%s: %v after a look at %d queues, want %s; %v", sort, names, counting.full, want, err)
		}
	}
}

func TestPagesOfSortedQueuesFollowEachOther(t *testing.T) {
	t.Parallel()
	s, e := setup(t)
	makeQueues(t, e, 3500)
	everything := func(sort string, limit int) (names []string) {
		for cursor, more := "", true; more; more = cursor != "" {
			list, next, err := s.Queues(t.Context(), everyone, QueueFilter{Sort: sort, Limit: limit, Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range list {
				names = append(names, q.Name)
			}
			cursor = next
		}
		return names
	}
	for sort := range queueSorts {
		for _, sort := range []string{sort, "-" + sort} {
			all := everything(sort, 4000)
			if paged := everything(sort, 370); len(all) != 3500 || !slices.Equal(paged, all) {
				t.Errorf("%s: %d queues, %d by pages, or in another order", sort, len(all), len(paged))
			}
		}
	}
}

func BenchmarkQueuesBySort(b *testing.B) {
	s, e := setup(b)
	makeQueues(b, e, 100_000)
	for _, sort := range []string{"name", "-name", "ready", "-ready", "-latency"} {
		b.Run(sort, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if list, _, err := s.Queues(b.Context(), everyone, QueueFilter{Sort: sort, Limit: 100}); err != nil ||
					len(list) != 100 {
					b.Fatal(len(list), err)
				}
			}
		})
	}
}
