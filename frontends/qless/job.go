package qless

import (
	"math"
	"slices"
)

// States of a job.
const (
	waiting   = "waiting"
	scheduled = "scheduled"
	depends   = "depends"
	running   = "running"
	stalled   = "stalled"
	failed    = "failed"
	complete  = "complete"
)

// job is a job as Qless clients see it. Jobs of other protocols get one when the front-end first sees them.
type job struct {
	jid, klass, state, queue, worker string

	data      string // JSON
	unread    bool   // data must still be read from the body of the broker's job
	priority  float64
	expires   float64
	retries   float64
	remaining float64
	time      float64 // of the last put, pop or completion: the start of the current wait or run
	due       float64 // hasDue: the scheduled time once its dependencies are complete
	hasDue    bool
	grace     bool // its lock has expired, and the worker was notified

	tags         []string
	history      []entry
	failure      *failure
	spawnedFrom  string
	dependents   []string
	dependencies []string

	places      [jobSets]place
	holders     []holder // workers whose lists contain the job
	tagged      []tagTime
	completed   bool // in the list of completed jobs
	completedAt float64
	failedGroup string // in the list of this group
	failedAt    float64

	gone    bool // cancelled or expired
	foreign bool // submitted by another protocol
	known   bool // it has a document
	changed bool // changed since it was packed
	broker  brokerJob
}

// place is the position of a job in one kind of list.
type place struct {
	queue string
	score float64
	in    bool
}

// holder is a worker whose list contains the job.
type holder struct {
	worker string
	until  float64
}

// tagTime is the time at which a job was added to the list of a tag.
type tagTime struct {
	tag string
	at  float64
}

// entry is one line of a job's history.
type entry struct {
	when float64
	what string
	item string // more members as JSON; empty: none
}

// failure describes the last failure of a job.
type failure struct {
	group, message, worker string
	when                   float64
}

var (
	jobShape = shapeOf("jid", "klass", "state", "queue", "worker", "tracked", "priority", "expires", "retries", "remaining",
		"data", "tags", "history", "failure", "spawned_from_jid", "dependents", "dependencies")
	failureShape = readShape(shapeOf("group", "message", "when", "worker"))
)

// readShape is the order of the members after a table has been written as JSON in the order s and parsed again.
func readShape(s shape) shape {
	t := newTable(0)
	for _, k := range s {
		t.set(k, true)
	}
	var read shape
	for i := range t.nodes {
		if t.nodes[i].used {
			read = append(read, t.nodes[i].key)
		}
	}
	return read
}

// appendJob writes the JSON of a job.
func (m *model) appendJob(b []byte, j *job) ([]byte, error) {
	var err error
	for i, key := range jobShape {
		b = append(b, "{,"[min(i, 1)])
		b = append(appendText(b, key), ':')
		if b, err = m.appendMember(b, j, key); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

func (m *model) appendMember(b []byte, j *job, key string) ([]byte, error) {
	switch key {
	case "jid":
		return appendText(b, j.jid), nil
	case "klass":
		return appendText(b, j.klass), nil
	case "state":
		return appendText(b, j.state), nil
	case "queue":
		return appendText(b, j.queue), nil
	case "worker":
		return appendText(b, j.worker), nil
	case "tracked":
		return appendJSON(b, m.tracked.has(j.jid), 0)
	case "priority":
		return appendJSON(b, j.priority, 0)
	case "expires":
		return appendJSON(b, j.expires, 0)
	case "retries":
		return appendJSON(b, j.retries, 0)
	case "remaining":
		return appendJSON(b, math.Floor(j.remaining), 0)
	case "data":
		return appendText(b, j.data), nil
	case "tags":
		return appendList(b, j.tags), nil
	case "history":
		return j.appendHistory(b)
	case "failure":
		return j.failure.append(b)
	case "spawned_from_jid":
		if j.spawnedFrom == "" {
			return append(b, "false"...), nil
		}
		return appendText(b, j.spawnedFrom), nil
	case "dependents":
		return appendList(b, j.dependents), nil
	}
	return appendList(b, j.dependencies), nil
}

// appendList writes a list of strings; an empty one is {}.
func appendList(b []byte, items []string) []byte {
	if len(items) == 0 {
		return append(b, "{}"...)
	}
	for i, s := range items {
		b = appendText(append(b, "[,"[min(i, 1)]), s)
	}
	return append(b, ']')
}

func (f *failure) append(b []byte) (_ []byte, err error) {
	if f == nil {
		return append(b, "{}"...), nil
	}
	return failureShape.append(b, members{"group": f.group, "message": f.message, "when": f.when, "worker": f.worker})
}

func (j *job) appendHistory(b []byte) (_ []byte, err error) {
	if len(j.history) == 0 {
		return append(b, "{}"...), nil
	}
	for i := range j.history {
		b = append(b, "[,"[min(i, 1)])
		if b, err = j.history[i].append(b); err != nil {
			return b, err
		}
	}
	return append(b, ']'), nil
}

func (e *entry) append(b []byte) ([]byte, error) {
	var t *table
	if e.item != "" {
		v, err := decode(e.item)
		if err != nil {
			return b, err
		}
		t, _ = v.(*table)
	}
	if t == nil {
		t = newTable(0)
	}
	t.set("when", e.when)
	t.set("what", e.what)
	return appendJSON(b, t, 0)
}

// members are values by key.
type members map[string]any

// append writes an object. It leaves out keys without a value.
func (s shape) append(b []byte, of members) (_ []byte, err error) {
	b = append(b, '{')
	start := len(b)
	for _, key := range s {
		v, there := of[key]
		if !there {
			continue
		}
		b = append(appendText(comma(b, start), key), ':')
		if b, err = appendJSON(b, v, 1); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

// json returns the object as a string. Its numbers must be finite.
func (s shape) json(of members) string {
	b, err := s.append(nil, of)
	if err != nil {
		return "{}"
	}
	return string(b)
}

// with returns a new list with one more item. The old list does not change.
func with(list []string, item string) []string {
	if slices.Contains(list, item) {
		return list
	}
	return append(slices.Clip(list), item)
}

// without returns a new list without an item. The old list does not change.
func without(list []string, item string) []string {
	i := slices.Index(list, item)
	if i < 0 {
		return list
	}
	return slices.Concat(list[:i], list[i+1:])
}
