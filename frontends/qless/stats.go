package qless

import "math"

// statKey is the key of the statistics of a queue and a day. A day is the time of its first second.
type statKey struct {
	day   float64
	queue string
}

// statistics of a queue on a day.
type statistics struct {
	retries, failed, failures float64
	wait, run                 distribution
}

// distribution of times, with mean and variance by Welford's algorithm.
type distribution struct {
	count, mean, vk float64
	histogram       map[int]float64 // counts by index in the reply
}

// day is the first second of the day of an instant.
func day(at float64) float64 { return at - luaMod(at, 86400) }

// luaMod is Lua's remainder: it has the sign of b.
func luaMod(a, b float64) float64 { return a - math.Floor(a/b)*b }

// Buckets of a histogram: seconds, minutes, hours and days.
const (
	minuteBuckets = 60
	hourBuckets   = minuteBuckets + 59
	dayBuckets    = hourBuckets + 23
	buckets       = dayBuckets + 6
)

// bucket is the index in the histogram for a time in whole seconds; -1: none.
func bucket(seconds float64) int {
	var i int
	switch {
	case seconds < 60:
		i = int(max(seconds, -1))
	case seconds < 3600:
		i = minuteBuckets - 1 + int(seconds/60)
	case seconds < 86400:
		i = hourBuckets - 1 + int(seconds/3600)
	default:
		i = dayBuckets - 1 + int(min(seconds/86400, buckets))
	}
	if i >= buckets {
		return -1
	}
	return i
}

func (d *distribution) add(value float64) {
	d.count++
	if d.count == 1 {
		d.mean, d.vk = value, 0
	} else {
		old := d.mean
		d.mean += (value - old) / d.count
		d.vk += (value - d.mean) * (value - old)
	}
	if i := bucket(math.Floor(value)); i >= 0 {
		h := make(map[int]float64, len(d.histogram)+1)
		for k, n := range d.histogram {
			h[k] = n
		}
		h[i]++
		d.histogram = h
	}
}

// table returns the distribution in the form of the reply.
func (d *distribution) table() *table {
	t := newTable(0)
	t.set("count", d.count)
	t.set("mean", d.mean)
	histogram := &table{array: make([]any, buckets)}
	for i := range histogram.array {
		histogram.array[i] = d.histogram[i]
	}
	t.set("histogram", histogram)
	if d.count > 1 {
		t.set("std", math.Sqrt(d.vk/(d.count-1)))
	} else {
		t.set("std", 0.0)
	}
	return t
}

// count changes the statistics of a queue for the day of an instant.
func (t *tx) count(queue string, at float64, change func(*statistics)) {
	key := statKey{day(at), queue}
	was := t.m.stats[key]
	next := &statistics{}
	if was != nil {
		*next = *was
	}
	change(next)
	assign(t, t.m.stats, key, next)
	t.note(statDoc(key))
	if was == nil {
		t.setIn(t.m.statDays, queue, formatNumber(key.day), key.day)
		t.expireStatistics(queue, key.day)
	}
}

// expireStatistics removes the statistics of a queue that are too old on the given day.
func (t *tx) expireStatistics(queue string, today float64) {
	keep := t.m.config.numberOr("stats-history", 30)
	z := setOf(t.m.statDays, queue)
	for _, name := range z.between(minusInf, today-keep*86400, 0, -1) {
		at, _ := z.score(name)
		if at == today-keep*86400 {
			continue
		}
		key := statKey{at, queue}
		erase(t, t.m.stats, key)
		t.unset(t.m.statDays, queue, name)
		t.note(statDoc(key))
	}
}

// addStatistics adds stored statistics to the model.
func (m *model) addStatistics(key statKey, s *statistics) {
	m.stats[key] = s
	if m.statDays[key.queue] == nil {
		m.statDays[key.queue] = &sortedSet{}
	}
	m.statDays[key.queue].add(formatNumber(key.day), key.day)
}

// stats queue date
func stats(t *tx, in *input) (any, error) {
	name := in.queue(0)
	at := in.number(1, `Stats(): Arg "date" missing or not a number: `)
	if in.err != nil {
		return nil, in.err
	}
	s := t.m.stats[statKey{day(at), name}]
	if s == nil {
		s = &statistics{}
	}
	return encode(object(
		"retries", s.retries, "failed", s.failed, "failures", s.failures, "wait", s.wait.table(), "run", s.run.table(),
	))
}
