package conveyor

import (
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/redcon"

	"broker/access"
	"broker/core"
	"broker/frontends/shared/resp"
)

// counters are numbers that clients count for their charts, by namespace and key. Each principal counts for itself;
// readers of a whole namespace see the sum.
type counters struct {
	numbers map[string]map[string]*counter // by name, then by owner; none is empty
	pool    *access.Pool
	next    core.Instant // time of the next check by expire
}

type counter struct {
	n       int64
	expires core.Instant
	holder  access.Holder
}

func (c *counters) expire(now core.Instant) {
	if now < c.next {
		return
	}
	c.next = now.Add(time.Minute)
	for name, owners := range c.numbers {
		for by, n := range owners {
			if n.expires <= now {
				c.remove(name, by)
			}
		}
	}
}

// get returns the counter of an owner; nil: it has none.
func (c *counters) get(name, by string, now core.Instant) *counter {
	if n := c.numbers[name][by]; n != nil && n.expires > now {
		return n
	}
	return nil
}

// add makes a counter with the number zero. It returns nil if its owner has too many.
func (c *counters) add(name string, by owner, expires core.Instant) *counter {
	c.remove(name, by.name)
	if len(name) > maxNameBytes || c.pool.Take(by.holder, 1) != nil {
		return nil
	}
	if c.numbers == nil {
		c.numbers = make(map[string]map[string]*counter)
	}
	if c.numbers[name] == nil {
		c.numbers[name] = make(map[string]*counter)
	}
	n := &counter{expires: expires, holder: by.holder}
	c.numbers[name][by.name] = n
	return n
}

func (c *counters) remove(name, by string) {
	owners := c.numbers[name]
	if n := owners[by]; n != nil {
		c.pool.Return(n.holder, 1)
		if delete(owners, by); len(owners) == 0 {
			delete(c.numbers, name)
		}
	}
}

func (k key) counterName() string { return k.namespace + ":" + k.name }

// incr key
func incr(s *session, b []byte, args []string) []byte {
	k := parseKey(args[1])
	if k.kind != keyCounter {
		return refuseKey(b, args[1])
	}
	f, by := s.front, s.owner()
	now := f.broker.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.counters.get(k.counterName(), by.name, now)
	if n == nil {
		if n = f.counters.add(k.counterName(), by, now.Add(counterFor)); n == nil {
			return redcon.AppendInt(b, 1) // it is only for charts
		}
	}
	n.n++
	return redcon.AppendInt(b, n.n)
}

// expire key seconds: counters are kept for at most an hour.
func expire(s *session, b []byte, args []string) []byte {
	k := parseKey(args[1])
	if k.kind != keyCounter {
		return refuseKey(b, args[1])
	}
	seconds, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return redcon.AppendError(b, resp.NotInteger)
	}
	f, by := s.front, s.owner()
	now := f.broker.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.counters.get(k.counterName(), by.name, now)
	if n == nil {
		return redcon.AppendInt(b, 0)
	}
	n.expires = expiry(now, seconds)
	return redcon.AppendInt(b, 1)
}

// expiry is when a counter with a time to live ends.
func expiry(now core.Instant, seconds int64) core.Instant {
	return now.Add(time.Duration(min(max(seconds, 0), int64(counterFor/time.Second))) * time.Second)
}

// setCounter is SET key number [EX seconds].
func (s *session) setCounter(b []byte, k key, args []string) []byte {
	number, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		return redcon.AppendError(b, resp.NotInteger)
	}
	f, by := s.front, s.owner()
	now := f.broker.Now()
	expires := now.Add(counterFor)
	switch {
	case len(args) == 3 && strings.EqualFold(args[1], "ex"):
		seconds, err := strconv.ParseInt(args[2], 10, 64)
		if err != nil || seconds <= 0 {
			return redcon.AppendError(b, "ERR invalid expire time in 'set' command")
		}
		expires = expiry(now, seconds)
	case len(args) != 1:
		return redcon.AppendError(b, "ERR syntax error")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.counters.add(k.counterName(), by, expires); n != nil {
		n.n = number
	}
	return redcon.AppendOK(b)
}

func (s *session) getCounter(b []byte, k key) []byte {
	f, own, all := s.front, s.owner().name, s.mayReadAll(k.namespace)
	now := f.broker.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	sum, found := int64(0), false
	for by := range f.counters.numbers[k.counterName()] {
		if n := f.counters.get(k.counterName(), by, now); n != nil && (all || by == own) {
			sum, found = sum+n.n, true
		}
	}
	if !found {
		return redcon.AppendNull(b)
	}
	return redcon.AppendBulkString(b, strconv.FormatInt(sum, 10))
}

func (s *session) removeCounter(k key) bool {
	f, by := s.front, s.owner()
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.counters.get(k.counterName(), by.name, f.broker.Now()) != nil
	f.counters.remove(k.counterName(), by.name)
	return found
}
