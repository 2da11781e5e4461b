package conveyor

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/redcon"

	"broker/core"
	"broker/frontends/resp"
)

// checkIns are the sorted sets of workers and of queues by the second of their last check-in, by key.
type checkIns map[string]map[string]float64

// Limits of what is kept for all clients together.
const (
	maxCheckIns  = 100_000
	maxNameBytes = 512
	maxCounters  = 100_000
	counterFor   = time.Hour
)

// setName is the name of a sorted set of check-ins.
func (k key) setName() string {
	if k.kind == keyWorkers {
		return k.namespace + ":workers"
	}
	return k.namespace + ":queues"
}

// checkIn notes the time of a worker or a queue. A worker's check-in extends the leases of its jobs.
func (s *session) checkIn(k key, name string, score float64) (isNew bool) {
	if len(name) > maxNameBytes {
		return false
	}
	if k.kind == keyWorkers {
		s.extendLeases(name)
	}
	f := s.front
	f.mu.Lock()
	defer f.mu.Unlock()
	set := f.checkIns[k.setName()]
	_, known := set[name]
	if !known && f.checkIns.size() >= maxCheckIns {
		return false
	}
	if set == nil {
		set = make(map[string]float64)
		if f.checkIns == nil {
			f.checkIns = make(checkIns)
		}
		f.checkIns[k.setName()] = set
	}
	set[name] = score
	return !known
}

func (c checkIns) size() (n int) {
	for _, set := range c {
		n += len(set)
	}
	return n
}

// members are the names of a set by score, between two bounds.
func (f *Frontend) members(k key, from, to float64) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	set := f.checkIns[k.setName()]
	var names []string
	for name, score := range set {
		if score >= from && score <= to {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(set[a], set[b]), strings.Compare(a, b)) })
	return names
}

// removeMembers removes names from a set and returns how many were there.
func (f *Frontend) removeMembers(k key, names []string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	set := f.checkIns[k.setName()]
	for _, name := range names {
		if _, found := set[name]; found {
			delete(set, name)
			n++
		}
	}
	return n
}

// counters are numbers that clients count for their charts, by namespace and key.
type counters struct {
	numbers map[string]counter
	next    core.Instant // when expire looks again
}

type counter struct {
	n       int64
	expires core.Instant
}

func (c *counters) expire(now core.Instant) {
	if now < c.next {
		return
	}
	c.next = now.Add(time.Minute)
	for name, n := range c.numbers {
		if n.expires <= now {
			delete(c.numbers, name)
		}
	}
}

func (c *counters) get(name string, now core.Instant) (n counter, found bool) {
	n, found = c.numbers[name]
	return n, found && n.expires > now
}

// put keeps a counter, unless there are too many.
func (c *counters) put(name string, n counter) {
	if c.numbers == nil {
		c.numbers = make(map[string]counter)
	}
	if _, known := c.numbers[name]; known || len(c.numbers) < maxCounters && len(name) <= maxNameBytes {
		c.numbers[name] = n
	}
}

func (k key) counterName() string { return k.namespace + ":" + k.name }

// incr key
func incr(s *session, b []byte, args []string) ([]byte, core.Commit) {
	k := parseKey(args[1])
	if k.kind != keyCounter {
		return refuseKey(b, args[1])
	}
	f := s.front
	now := f.broker.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	n, found := f.counters.get(k.counterName(), now)
	if !found {
		n = counter{expires: now.Add(counterFor)}
	}
	n.n++
	f.counters.put(k.counterName(), n)
	return redcon.AppendInt(b, n.n), 0
}

// expire key seconds: counters are kept for an hour at most.
func expire(s *session, b []byte, args []string) ([]byte, core.Commit) {
	k := parseKey(args[1])
	if k.kind != keyCounter {
		return refuseKey(b, args[1])
	}
	seconds, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return refuse(b, resp.NotInteger)
	}
	f := s.front
	now := f.broker.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	n, found := f.counters.get(k.counterName(), now)
	if !found {
		return redcon.AppendInt(b, 0), 0
	}
	n.expires = expiry(now, seconds)
	f.counters.put(k.counterName(), n)
	return redcon.AppendInt(b, 1), 0
}

// expiry is when a counter with a time to live ends.
func expiry(now core.Instant, seconds int64) core.Instant {
	return now.Add(time.Duration(min(max(seconds, 0), int64(counterFor/time.Second))) * time.Second)
}

// setCounter is SET key number [EX seconds].
func (s *session) setCounter(b []byte, k key, args []string) ([]byte, core.Commit) {
	n, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil {
		return refuse(b, resp.NotInteger)
	}
	f := s.front
	now := f.broker.Now()
	expires := now.Add(counterFor)
	switch {
	case len(args) == 3 && strings.EqualFold(args[1], "ex"):
		seconds, err := strconv.ParseInt(args[2], 10, 64)
		if err != nil || seconds <= 0 {
			return refuse(b, "ERR invalid expire time in 'set' command")
		}
		expires = expiry(now, seconds)
	case len(args) != 1:
		return refuse(b, "ERR syntax error")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counters.put(k.counterName(), counter{n, expires})
	return ok(b)
}

func (s *session) getCounter(b []byte, k key) ([]byte, core.Commit) {
	f := s.front
	f.mu.Lock()
	defer f.mu.Unlock()
	n, found := f.counters.get(k.counterName(), f.broker.Now())
	if !found {
		return redcon.AppendNull(b), 0
	}
	return redcon.AppendBulkString(b, strconv.FormatInt(n.n, 10)), 0
}

func (f *Frontend) removeCounter(k key) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, found := f.counters.get(k.counterName(), f.broker.Now())
	delete(f.counters.numbers, k.counterName())
	return found
}

// parseBound reads a bound of a range of scores: a number, after "(" an exclusive one, -inf or +inf.
func parseBound(text string, toward float64) (float64, bool) {
	rest, exclusive := strings.CutPrefix(text, "(")
	f, err := strconv.ParseFloat(rest, 64)
	if err != nil || math.IsNaN(f) {
		return 0, false
	}
	if exclusive {
		f = math.Nextafter(f, toward)
	}
	return f, true
}

// parseBounds reads both bounds of a range.
func parseBounds(from, to string) (low, high float64, ok bool) {
	low, ok = parseBound(from, math.Inf(1))
	high, also := parseBound(to, math.Inf(-1))
	return low, high, ok && also
}
