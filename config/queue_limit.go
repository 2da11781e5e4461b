package config

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// QueueLimit is a limit for a type or a key in a queue. The name Each means every type or key without its own limit.
type QueueLimit struct {
	Queue string `toml:"queue" doc:"name of the queue"`
	Type  string `toml:"type" doc:"type of the jobs, or * for each type separately"`
	Key   string `toml:"key" doc:"key of the jobs, or * for each key separately"`

	// Members are the settings of the limit, in JSON. The program checks them, not this package.
	Members []byte
}

// Each is the type or key of a QueueLimit for each type or key separately.
const Each = "*"

// Sharing defines the keys of a queue's jobs, and how they share its workers.
type Sharing struct {
	Queue   string         `toml:"queue" doc:"name of the queue"`
	Key     string         `toml:"key" doc:"tag:NAME or unique"`
	Fair    bool           `toml:"fair" doc:"the keys take turns"`
	Ordered bool           `toml:"ordered" doc:"a job runs when all earlier jobs of its key have ended"`
	Weights map[string]int `toml:"weights"`
}

// UniqueKey is a value of Sharing.Key: the part of the unique key before the first colon. TagKey is the prefix of the
// other values; the name of a tag follows.
const (
	UniqueKey = "unique"
	TagKey    = "tag:"
)

// maxWeight is the most turns of a key.
const maxWeight = 1_000

// queueLimits reads [[queue_limit]].
func (l *loader) queueLimits(v any, source string, c *Config) {
	for i, table := range l.tables("queue_limit", v, source) {
		at, names := fmt.Sprintf("queue_limit[%d]", i), map[string]any{}
		for _, name := range []string{"queue", "type", "key"} {
			if v := take(table, name); v != nil {
				names[name] = v
			}
		}
		c.QueueLimits = append(c.QueueLimits, QueueLimit{Members: l.members(at, table, source)})
		l.row(at+".", reflect.ValueOf(&c.QueueLimits[i]).Elem(), names, nil, source)
	}
}

// sharings reads [[sharing]].
func (l *loader) sharings(v any, source string, c *Config) {
	for i, table := range l.tables("sharing", v, source) {
		prefix, s := fmt.Sprintf("sharing[%d].", i), Sharing{}
		if weights := take(table, "weights"); weights != nil {
			rows, ok := weights.(map[string]any)
			if !ok {
				l.complain(prefix+"weights", "not a table (%s)", source)
			}
			s.Weights = make(map[string]int, len(rows))
			for _, key := range slices.Sorted(maps.Keys(rows)) {
				n, err := parseInt(rows[key])
				if err == nil && (n < 1 || n > maxWeight) {
					err = fmt.Errorf("%d is not between 1 and %d", n, maxWeight)
				}
				if err != nil {
					l.complain(prefix+"weights."+key, "%v (%s)", err, source)
				}
				s.Weights[key] = int(n)
			}
		}
		l.row(prefix, reflect.ValueOf(&s).Elem(), table, nil, source)
		c.Sharings = append(c.Sharings, s)
	}
}

// checkQueueLimits validates the limits of queues.
func (c *Config) checkQueueLimits(v *checker) {
	for i, l := range c.QueueLimits {
		setting := fmt.Sprintf("queue_limit[%d]", i)
		switch {
		case l.Queue == "":
			v.complain(setting+".queue", "missing")
		case (l.Type == "") == (l.Key == ""):
			v.complain(setting, "must have either type or key")
		case l.Key != "" && !slices.ContainsFunc(c.Sharings, func(s Sharing) bool { return s.Queue == l.Queue }):
			v.complain(setting+".key", "jobs of the queue %q have no key, so the limit would have no effect; a "+
				"[[sharing]] of the queue sets it, for example key = \"tag:tenant\" to use the tag tenant as key", l.Queue)
		}
		if slices.ContainsFunc(c.QueueLimits[:i],
			func(o QueueLimit) bool { return o.Queue == l.Queue && o.Type == l.Type && o.Key == l.Key }) {
			v.complain(setting, "occurs twice")
		}
	}
	for i, s := range c.Sharings {
		setting := fmt.Sprintf("sharing[%d]", i)
		tag, isTag := strings.CutPrefix(s.Key, TagKey)
		switch {
		case s.Queue == "":
			v.complain(setting+".queue", "missing")
		case s.Key != UniqueKey && (!isTag || tag == "" || strings.Contains(tag, ":")):
			v.complain(setting+".key", "%q is not unique, or tag: followed by the name of a tag", s.Key)
		case len(s.Weights) > 0 && !s.Fair:
			v.complain(setting+".weights", "need fair = true")
		case s.Ordered && (s.Fair || !isTag):
			v.complain(setting+".ordered", "needs a key tag:NAME, and excludes fair")
		}
		if slices.ContainsFunc(c.Sharings[:i], func(o Sharing) bool { return o.Queue == s.Queue }) {
			v.complain(setting+".queue", "%q has another sharing", s.Queue)
		}
	}
}
