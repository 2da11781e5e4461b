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

// checkIns holds the sorted sets of workers and of queues, by key. The score is the second of the last check-in.
type checkIns struct {
	sets map[string]map[string]float64 // none is empty
	size int                           // names in all of them
}

// set records the score of a name and reports whether the name is new. If there are too many names, it adds no more.
func (c *checkIns) set(key, name string, score float64) (isNew bool) {
	set := c.sets[key]
	if _, known := set[name]; known {
		set[name] = score
		return false
	}
	if c.size >= maxCheckIns {
		return false
	}
	if c.sets == nil {
		c.sets = make(map[string]map[string]float64)
	}
	if set == nil {
		set = make(map[string]float64)
		c.sets[key] = set
	}
	set[name] = score
	c.size++
	return true
}

// remove removes a name and reports whether it existed.
func (c *checkIns) remove(key, name string) bool {
	set := c.sets[key]
	if _, found := set[name]; !found {
		return false
	}
	c.size--
	if delete(set, name); len(set) == 0 {
		delete(c.sets, key)
	}
	return true
}

// Limits of the data for all clients together.
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

// checkIn records the time of a worker or a queue. A worker's check-in extends the leases of its jobs.
func (s *session) checkIn(k key, name string, score float64) (isNew bool) {
	if len(name) > maxNameBytes {
		return false
	}
	if k.kind == keyWorkers {
		s.extendLeases(name)
	}
	s.front.mu.Lock()
	defer s.front.mu.Unlock()
	return s.front.checkIns.set(k.setName(), name, score)
}

// members returns the names of a set with scores between two bounds. It leaves out queues that the client may not see.
func (s *session) members(k key, from, to float64) []string {
	type member struct {
		name  string
		score float64
	}
	f := s.front
	var all []member
	f.mu.Lock()
	for name, score := range f.checkIns.sets[k.setName()] {
		if score >= from && score <= to {
			all = append(all, member{name, score})
		}
	}
	f.mu.Unlock()
	if k.kind == keyQueues {
		all = slices.DeleteFunc(all, func(m member) bool { return !s.mayHave(f.queueOf(k.namespace, m.name)) })
	}
	slices.SortFunc(all, func(a, b member) int { return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.name, b.name)) })
	names := make([]string, len(all))
	for i, m := range all {
		names[i] = m.name
	}
	return names
}

// removeMembers removes names from a set and returns the number of removed names.
func (f *Frontend) removeMembers(k key, names []string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range names {
		if f.checkIns.remove(k.setName(), name) {
			n++
		}
	}
	return n
}

// counters are numbers that clients count for their charts, by namespace and key.
type counters struct {
	numbers map[string]counter
	next    core.Instant // time of the next check by expire
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

// put stores a counter, unless there are too many.
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

// expire key seconds: counters are kept for at most an hour.
func expire(s *session, b []byte, args []string) ([]byte, core.Commit) {
	k := parseKey(args[1])
	if k.kind != keyCounter {
		return refuseKey(b, args[1])
	}
	seconds, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return resp.Refuse(b, resp.NotInteger)
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
		return resp.Refuse(b, resp.NotInteger)
	}
	f := s.front
	now := f.broker.Now()
	expires := now.Add(counterFor)
	switch {
	case len(args) == 3 && strings.EqualFold(args[1], "ex"):
		seconds, err := strconv.ParseInt(args[2], 10, 64)
		if err != nil || seconds <= 0 {
			return resp.Refuse(b, "ERR invalid expire time in 'set' command")
		}
		expires = expiry(now, seconds)
	case len(args) != 1:
		return resp.Refuse(b, "ERR syntax error")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counters.put(k.counterName(), counter{n, expires})
	return resp.OK(b)
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
