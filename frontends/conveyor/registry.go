package conveyor

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"broker/access"
)

// owner is the principal to whom an entry of the registries belongs, and the holder of its place.
type owner struct {
	name   string
	holder access.Holder
}

// owner is the principal of the client, which may change only its own entries.
func (s *session) owner() owner {
	p, from := s.Principal(), ""
	if a := s.Conn.RemoteAddr(); a != nil {
		from = a.String()
	}
	return owner{p.Name(), access.HolderOf(p, from)}
}

// checkIns holds the sorted sets of workers and of queues, by key. The score is the second of the last check-in. Each
// principal has entries of its own, so that none removes or keeps alive those of others.
type checkIns struct {
	sets map[string]map[checkIn]float64 // none is empty
	pool *access.Pool                   // of names in all of them
}

// checkIn is a name that a principal has checked in.
type checkIn struct{ name, owner string }

// set records the score of a name and reports whether the name is new. If its owner has too many names, it adds no
// more.
func (c *checkIns) set(key, name string, by owner, score float64) (isNew bool) {
	set, entry := c.sets[key], checkIn{name, by.name}
	if _, known := set[entry]; known {
		set[entry] = score
		return false
	}
	if c.pool.Take(by.holder, 1) != nil {
		return false
	}
	if c.sets == nil {
		c.sets = make(map[string]map[checkIn]float64)
	}
	if set == nil {
		set = make(map[checkIn]float64)
		c.sets[key] = set
	}
	set[entry] = score
	return true
}

// remove removes a name of an owner and reports whether it existed.
func (c *checkIns) remove(key, name string, by owner) bool {
	set, entry := c.sets[key], checkIn{name, by.name}
	if _, found := set[entry]; !found {
		return false
	}
	c.pool.Return(by.holder, 1)
	if delete(set, entry); len(set) == 0 {
		delete(c.sets, key)
	}
	return true
}

// Limits of the data for all clients together; each principal has a share.
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
	by := s.owner()
	s.front.mu.Lock()
	defer s.front.mu.Unlock()
	return s.front.checkIns.set(k.setName(), name, by, score)
}

// members returns the names of a set with scores between two bounds: those of the client's principal, of queues that it
// may see, and all of them for readers of the whole namespace. A name of several principals has the highest score.
func (s *session) members(k key, from, to float64) []string {
	s.Costly = true // there may be many thousands
	f, own, all := s.front, s.owner().name, s.mayReadAll(k.namespace)
	scores := make(map[string]float64)
	f.mu.Lock()
	for entry, score := range f.checkIns.sets[k.setName()] {
		if all || entry.owner == own || k.kind == keyQueues {
			if before, known := scores[entry.name]; !known || score > before {
				scores[entry.name] = score
			}
		}
	}
	f.mu.Unlock()
	var names []string
	for name, score := range scores {
		if score >= from && score <= to && (k.kind != keyQueues || s.mayHave(f.queueOf(k.namespace, name))) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(scores[a], scores[b]), strings.Compare(a, b))
	})
	return names
}

// mayReadAll reports whether the client may read every queue of a namespace.
func (s *session) mayReadAll(namespace string) bool {
	return s.Principal().May(access.Read, s.front.queueOf(namespace, anyName))
}

// removeMembers removes names of the client's principal from a set and returns the number of removed names.
func (s *session) removeMembers(k key, names []string) (n int) {
	by := s.owner()
	s.front.mu.Lock()
	defer s.front.mu.Unlock()
	for _, name := range names {
		if s.front.checkIns.remove(k.setName(), name, by) {
			n++
		}
	}
	return n
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
