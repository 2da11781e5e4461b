package conveyor

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
	"broker/frontends/shared/resp"
)

// setupFor opens a stage whose clients are a principal with the given grants.
func setupFor(t testing.TB, grants ...access.Grant) *frontendtest.Stage {
	t.Helper()
	control := &access.Control{}
	control.Load([]access.Entry{{Name: "shop", Grants: grants}})
	return frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		return New(access.NewGuard(b, control, core.Conveyor, "shop"), Options{})
	})
}

func TestEventsOfANamespaceNeedReadOnAllItsQueues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, channel string
		ok               bool
	}{
		{"a*", "conv:events", false},
		{"a*", "n:events", false},
		{"n:orders", "n:events", false},
		{"n:*", "n:events", true},
		{"n:*", "conv:events", false},
		{"*", "conv:events", true},
	} {
		s := setupFor(t, access.Grant{Role: access.Read, Queues: []string{c.pattern}})
		if got := dial(t, s, "c").do("SUBSCRIBE", c.channel); strings.HasPrefix(got, "subscribe") != c.ok {
			t.Errorf("a reader of %s subscribes to %s: %s", c.pattern, c.channel, got)
		}
	}
}

func TestPublishNeedsConsumeOnTheQueueOfTheJob(t *testing.T) {
	t.Parallel()
	s := setupFor(t, access.Grant{Role: access.Consume, Queues: []string{"alpha"}})
	core.DoOnce(s.Broker, core.Conveyor,
		&core.Submit{Job: &core.Job{ID: jobIn(2, "", "").uuid, Queue: "secret"}})
	c := dial(t, s, "c")
	for _, e := range []struct {
		name, message string
		ok            bool
	}{
		{"a job of a queue that it works on", jobIn(1, "alpha", "x").encode(), true},
		{"a job of another queue", jobIn(1, "secret", "x").encode(), false},
		{"a job of another queue, under the name of its own", jobIn(2, "alpha", "x").encode(), false},
		{"no job", "nonsense", false},
		{"a job without a queue", jobIn(1, "", "x").encode(), false},
	} {
		got := c.do("PUBLISH", "conv:events", e.message)
		if allowed := got == "0"; allowed != e.ok {
			t.Errorf("%s: %s", e.name, got)
		}
	}
	if got := c.do("PUBLISH", "other:events", jobIn(1, "alpha", "x").encode()); !strings.Contains(got, "NOPERM") {
		t.Errorf("in another namespace: %s", got)
	}
}

func TestPublisherWithoutReadSeesNoSubscribers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		grants []access.Grant
		want   string
	}{
		{[]access.Grant{{Role: access.Admin}}, "1"},
		{[]access.Grant{{Role: access.Consume}}, "0"},
		{[]access.Grant{{Role: access.Consume}, {Role: access.Read}}, "1"},
	} {
		s := setupFor(t, c.grants...)
		front := s.Front.(*Frontend)
		var sub resp.Subscriber
		sub.Wake = func() {}
		front.messages.Subscribe(&sub, nil, []string{"conv:events"})
		dial(t, s, "c").want(c.want, "PUBLISH", "conv:events", jobIn(1, "alpha", "x").encode())
	}
}

func TestActiveQueuesContainPermittedQueuesOnly(t *testing.T) {
	t.Parallel()
	s := setupFor(t, access.Grant{Role: access.Consume, Queues: []string{"a*"}},
		access.Grant{Role: access.Read, Queues: []string{"a*"}})
	c := dial(t, s, "c")
	c.want("2", "ZADD", "conv:queues:active", "1", "alpha", "1", "secret")
	c.want("alpha", "ZRANGE", "conv:queues:active", "0", "-1")
	c.want("alpha", "ZRANGEBYSCORE", "conv:queues:active", "-inf", "+inf")
	c.want("1", "ZCARD", "conv:queues:active")
}

func TestOneOffNamespacesDoNotLeakMemory(t *testing.T) {
	t.Parallel()
	checkIns, by := checkIns{pool: access.NewPool(2)}, owner{holder: access.NamedHolder("", false)}
	for i := range 1000 {
		key := strconv.Itoa(i)
		if !checkIns.set(key, "w", by, 1) || checkIns.set(key, "w", by, 2) ||
			!checkIns.remove(key, "w", by) || checkIns.remove(key, "w", by) {
			t.Fatal(key)
		}
	}
	if len(checkIns.sets) > 0 {
		t.Errorf("%d sets", len(checkIns.sets))
	}
}

// setupTenants opens a stage with two tenants, which may work on queues with their own prefixes, and a reader of all.
func setupTenants(t *testing.T) (a, b, reader client) {
	t.Helper()
	control := &access.Control{}
	entry := func(name string, grants ...access.Grant) access.Entry {
		return access.Entry{Name: name, TokenSHA256: access.HashToken(name), Grants: grants}
	}
	tenant := func(name string) access.Entry {
		queues := []string{name + ".*"}
		work := access.Grant{Role: access.Consume, Queues: queues}
		return entry(name, work, access.Grant{Role: access.Read, Queues: queues})
	}
	control.Load([]access.Entry{tenant("a"), tenant("b"), entry("reader", access.Grant{Role: access.Read})})
	s := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		return New(access.NewGuard(b, control, core.Conveyor, ""), Options{})
	})
	login := func(name string) client {
		c := dial(t, s, name)
		c.want("OK", "AUTH", name, name)
		return c
	}
	return login("a"), login("b"), login("reader")
}

// A principal changes only its own entries of workers and queues, and does not see the workers of others.
func TestCheckInsBelongToTheirPrincipals(t *testing.T) {
	t.Parallel()
	a, b, reader := setupTenants(t)
	for set, name := range map[string]string{"conv:workers:active": "worker", "conv:queues:active": "a.jobs"} {
		a.want("1", "ZADD", set, "10", name)
		b.want("0", "ZREM", set, name)
		b.want("0", "ZREMRANGEBYSCORE", set, "-inf", "+inf")
		b.want("1", "ZADD", set, "1", name)
		reader.want(name, "ZRANGEBYSCORE", set, "10", "+inf")
		reader.want("1", "ZCARD", set)
		b.want("1", "ZREM", set, name)
		b.want("", "ZRANGE", set, "0", "-1")
		a.want(name, "ZRANGE", set, "0", "-1")
		a.want("1", "ZREMRANGEBYSCORE", set, "-inf", "+inf")
		reader.want("0", "ZCARD", set)
	}
}

func TestCountersBelongToTheirPrincipals(t *testing.T) {
	t.Parallel()
	a, b, reader := setupTenants(t)
	a.want("1", "INCR", "conv:hist:day")
	a.want("2", "INCR", "conv:hist:day")
	b.want("1", "INCR", "conv:hist:day")
	b.want("1", "GET", "conv:hist:day")
	reader.want("3", "GET", "conv:hist:day")
	b.want("1", "DEL", "conv:hist:day")
	b.want("0", "EXPIRE", "conv:hist:day", "0")
	b.want("OK", "SET", "conv:hist:day", "40")
	reader.want("42", "GET", "conv:hist:day")
	a.want("2", "GET", "conv:hist:day")
}

// One principal leaves places for the workers of others.
func TestPrincipalsShareTheRegistries(t *testing.T) {
	t.Parallel()
	pool := access.NewPool(10)
	names := checkIns{pool: pool}
	loud, quiet := owner{"loud", access.NamedHolder("loud", false)}, owner{"quiet", access.NamedHolder("quiet", false)}
	added := 0
	for i := range 20 {
		if names.set("k", strconv.Itoa(i), loud, 1) {
			added++
		}
	}
	if added != 5 || !names.set("k", "w", quiet, 1) {
		t.Errorf("%d names of one principal", added)
	}
	numbers := counters{pool: access.NewPool(10)}
	added = 0
	for i := range 20 {
		if numbers.add(strconv.Itoa(i), loud, 1) != nil {
			added++
		}
	}
	if added != 5 || numbers.add("n", quiet, 1) == nil {
		t.Errorf("%d counters of one principal", added)
	}
	numbers.expire(1)
	if len(numbers.numbers) > 0 || numbers.pool.Take(loud.holder, 5) != nil {
		t.Error("expired counters keep their places")
	}
}

func TestClosingJobsWithOneParentUseLimitedMemory(t *testing.T) {
	t.Parallel()
	var c closingJobs
	now := core.Instant(time.Hour)
	for i := range 100_000 {
		c.put("parent", closingJob{}, now)
		child := fmt.Sprint("child", i)
		c.put(child, closingJob{}, now)
		c.leave(child)
		if i%1000 == 0 {
			now = now.Add(time.Second)
			c.expire(now)
		}
	}
	if len(c.order) > 2*minOrder {
		t.Errorf("%d places for %d jobs", len(c.order), len(c.jobs))
	}
	if c.expire(now.Add(2 * closingFor)); len(c.order)+len(c.jobs)+c.bytes > 0 {
		t.Errorf("%d places, %d jobs, %d bytes are left", len(c.order), len(c.jobs), c.bytes)
	}
}

func TestRangeOfLargeJobsIsRefused(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		return New(access.Unrestricted(b, core.Conveyor), Options{MaxOutputBytes: 10_000})
	})
	c := dial(t, s, "c")
	for n := range 3 {
		c.do("LPUSH", "conv:queue:q", jobIn(n, "q", strings.Repeat("x", 6000)).encode())
	}
	if got := c.do("LRANGE", "conv:queue:q", "0", "2"); !strings.HasPrefix(got, "ERR the jobs of this range") {
		t.Errorf("got %d bytes", len(got))
	}
	if got := c.do("LRANGE", "conv:queue:q", "1", "1"); !strings.Contains(got, "xxx") {
		t.Errorf("a single one: %.60q", got)
	}
}

func TestCheckInFindsLeasesBesideConnectionsWithTheWorkersName(t *testing.T) {
	t.Parallel()
	var b core.Broker
	s := frontendtest.Open(t, func(broker core.Broker) frontends.Frontend {
		b = broker
		return New(access.Unrestricted(b, core.Conveyor), Options{})
	},
		frontendtest.InMemory)
	id := b.Open(core.ClientOptions{Protocol: core.HTTP, Wake: func() {}})
	for range 21 {
		ops := make([]core.Op, 1000)
		for i := range ops {
			ops[i] = &core.Submit{Job: &core.Job{Queue: "other"}}
		}
		b.Do(id, append(ops, &core.Lease{
			Queues: []string{"other"}, Holder: core.HeldByWorker, Worker: "x", LeaseFor: time.Hour, Max: 1000,
		}), nil)
	}
	c := dial(t, s, "c")
	c.do("LPUSH", "conv:queue:q", jobIn(1, "q", "payload").encode())
	c.take("w", "q")
	until := func() core.Instant {
		return b.Do(id, []core.Op{&core.Inspect{Ref: core.Ref{ID: idOf(1)}, Brief: true}}, nil)[0].Info.LeaseUntil
	}
	before := until()
	stranger := dial(t, s, "stranger")
	stranger.want("OK", "CLIENT", "SETNAME", "w")
	stranger.want("w", "CLIENT", "GETNAME")
	s.Advance(leaseFor / 2)
	c.do("ZADD", "conv:workers:active", "1", "w")
	if after := until(); after != before.Add(leaseFor/2) {
		t.Errorf("the lease ends %v after it did before", after.Sub(before))
	}
}

func TestOrdinaryCommandsAreNotCountedAsRefused(t *testing.T) {
	t.Parallel()
	alpha := []string{"alpha"}
	s := setupFor(t, access.Grant{Role: access.Produce, Queues: alpha},
		access.Grant{Role: access.Consume, Queues: alpha})
	c, job := dial(t, s, "c"), jobIn(1, "alpha", "x").encode()
	c.want("1", "LPUSH", "conv:queue:alpha", job)
	c.want("0", "PUBLISH", "conv:events", job)
	control := s.Front.(*Frontend).broker.Control()
	if n := control.Refusals(core.Conveyor); n != 0 {
		t.Errorf("%d refusals were counted", n)
	}
	c.do("PUBLISH", "conv:events", "nonsense")
	if n := control.Refusals(core.Conveyor); n != 1 {
		t.Errorf("%d refusals were counted, want 1", n)
	}
}

// A reload may take the right to read from a subscriber, or change its secret: it gets no messages from then on.
func TestSubscriberThatMayNoLongerReadGetsNoMessages(t *testing.T) {
	t.Parallel()
	other := access.Entry{
		Name: "worker", TokenSHA256: access.HashToken("worker"),
		Grants: []access.Grant{{Role: access.Consume}, {Role: access.Read}},
	}
	frontendtest.LosingRead(t, other, func(t *testing.T, control *access.Control, reload func()) {
		s := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
			return New(access.NewGuard(b, control, core.Conveyor, ""), Options{})
		})
		reader, worker := dial(t, s, "reader"), dial(t, s, "worker")
		reader.want("OK", "AUTH", "reader", "old")
		reader.want("subscribe conv:events 1", "SUBSCRIBE", "conv:events")
		worker.want("OK", "AUTH", "worker", "worker")
		worker.want("1", "PUBLISH", "conv:events", "first")
		if got := reader.next(); got != "message conv:events first" {
			t.Fatalf("got %s", got)
		}
		reload()
		worker.want("1", "PUBLISH", "conv:events", "second")
		reader.want("pong ", "PING")
	})
}
