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

	gone        bool // cancelled or expired
	foreign     bool // submitted by another protocol
	hasDocument bool
	changed     bool // changed since it was packed
	broker      brokerJob
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

// jobKeys are the members of a job, in the order of the script.
var jobKeys = [...]string{
	"jid", "klass", "state", "queue", "worker", "tracked", "priority", "expires", "retries", "remaining",
	"data", "tags", "history", "failure", "spawned_from_jid", "dependents", "dependencies",
}

// jobOrder has the indexes of jobKeys in the order of the JSON. Jobs are most of what is encoded, so they need no table
// each.
var jobOrder = func() (order []int) {
	t := newTable(fieldCount(len(jobKeys)))
	for i, key := range jobKeys {
		t.set(key, i)
	}
	for i := range t.nodes {
		if index, used := t.nodes[i].value.(int); used {
			order = append(order, index)
		}
	}
	return order
}()

// appendJob writes the JSON of a job.
func (m *model) appendJob(b []byte, j *job) ([]byte, error) {
	history, err := j.encodeHistory()
	if err != nil {
		return b, err
	}
	var spawnedFrom any = j.spawnedFrom
	if j.spawnedFrom == "" {
		spawnedFrom = false
	}
	values := [len(jobKeys)]any{
		j.jid, j.klass, j.state, j.queue, j.worker, m.tracked.has(j.jid), j.priority, j.expires, j.retries,
		math.Floor(j.remaining),
		j.data, j.tags, history, j.failure.object(), spawnedFrom, j.dependents, j.dependencies,
	}
	for i, k := range jobOrder {
		b = append(appendText(append(b, "{,"[min(i, 1)]), jobKeys[k]), ':')
		if b, err = appendJSON(b, values[k], 1); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

// object returns the failure as the script reads it from Redis.
func (f *failure) object() *table {
	if f == nil {
		return newTable(0)
	}
	return object("group", f.group, "message", f.message, "when", f.when, "worker", f.worker).parsed()
}

func (j *job) encodeHistory() (b encoded, err error) {
	for i := range j.history {
		b = append(b, "[,"[min(i, 1)])
		if b, err = j.history[i].append(b); err != nil {
			return b, err
		}
	}
	if len(b) == 0 {
		return encoded("{}"), nil
	}
	return append(b, ']'), nil
}

func (e *entry) append(b []byte) ([]byte, error) {
	t := newTable(0)
	if e.item != "" {
		v, err := decode(e.item)
		if err != nil {
			return b, err
		}
		if members, ok := v.(*table); ok {
			t = members
		}
	}
	t.set("when", e.when)
	t.set("what", e.what)
	return appendJSON(b, t, 0)
}

// with returns a new list with one more item. The old list does not change.
func with(list []string, item string) []string {
	if slices.Contains(list, item) {
		return list
	}
	return append(slices.Clip(list), item)
}

// withAll is with for many items, in linear time.
func withAll(list, items []string) []string {
	has := stringSet(list)
	list = slices.Clip(list)
	for _, item := range items {
		if !has[item] {
			has[item] = true
			list = append(list, item)
		}
	}
	return list
}

// without returns a new list without an item. The old list does not change.
func without(list []string, item string) []string {
	i := slices.Index(list, item)
	if i < 0 {
		return list
	}
	return slices.Concat(list[:i], list[i+1:])
}

// withoutAll is without for many items, in linear time.
func withoutAll(list, items []string) []string {
	gone := stringSet(items)
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return gone[s] })
}

// stringSet returns the items of a list as a set.
func stringSet(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, s := range list {
		set[s] = true
	}
	return set
}
