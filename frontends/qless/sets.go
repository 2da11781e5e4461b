package qless

import (
	"strings"

	"github.com/tidwall/redcon"
)

// Clients read the sizes of some of the script's sorted sets, and when recurring jobs are due, with commands of Redis.

var setNames = map[string]setKind{
	"work": waitingSet, "locks": lockSet, "scheduled": scheduledSet, "depends": dependsSet, "recur": recurringSet,
}

// sortedSetOf returns the set for a key of the script; empty for an unknown key.
func (m *model) sortedSetOf(key string) *sortedSet {
	if rest, ok := strings.CutPrefix(key, "ql:q:"); ok {
		if i := strings.LastIndexByte(rest, '-'); i >= 0 {
			if kind, ok := setNames[rest[i+1:]]; ok {
				return m.set(rest[:i], kind)
			}
		}
		return &noSet
	}
	if tag, ok := strings.CutPrefix(key, "ql:t:"); ok {
		return setOf(m.tags, tag)
	}
	if rest, ok := strings.CutPrefix(key, "ql:w:"); ok {
		if worker, ok := strings.CutSuffix(rest, ":jobs"); ok {
			return setOf(m.held, worker)
		}
	}
	switch key {
	case "ql:queues":
		return &m.seen
	case "ql:workers":
		return &m.workers
	case "ql:tracked":
		return &m.tracked
	case "ql:completed":
		return &m.completed
	case "ql:tags":
		return &m.tagCounts
	}
	return &noSet
}

// scoreIn returns the score of a name in the set for a key of the script.
func (m *model) scoreIn(key, name string) (float64, bool) {
	z := m.sortedSetOf(key)
	for kind := range jobSets {
		if j := m.jobs.get(name); j != nil && j.places[kind].in && m.set(j.places[kind].queue, kind) == z {
			return j.places[kind].score, true
		}
	}
	return z.score(name)
}

func zcard(s *session, b []byte, args []string) []byte {
	f := s.front
	defer s.enter()()
	f.sync()
	return redcon.AppendInt(b, int64(f.model.sortedSetOf(args[1]).len()))
}

func zscore(s *session, b []byte, args []string) []byte {
	f := s.front
	defer s.enter()()
	f.sync()
	score, there := f.model.scoreIn(args[1], args[2])
	if !there {
		return redcon.AppendNull(b)
	}
	return redcon.AppendBulk(b, appendFloat(nil, score, 17))
}
