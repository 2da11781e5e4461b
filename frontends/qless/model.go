package qless

// model is everything that Qless clients see. It is in memory; what is not in the broker's jobs is also stored as documents,
// in the commit of the change. Frontend.mu guards it.
type model struct {
	jobs      jobTable
	recurring map[string]*recurringJob
	queues    map[string]*queue
	seen      sortedSet       // queues, by their first use
	paused    map[string]bool // queues
	workers   sortedSet       // by their last pop or heartbeat
	held      map[string]*sortedSet
	completed sortedSet
	tracked   sortedSet
	tags      map[string]*sortedSet // jobs of a tag, by the time of tagging
	tagCounts sortedSet
	failures  map[string]*sortedSet // failed jobs of a group, by failureCount
	config    config
	stats     map[statKey]*statistics
	statDays  map[string]*sortedSet // of a queue, the days with statistics

	failureCount float64 // failures so far: the order of failed jobs
	lastNow      float64 // the greatest now of any caller
}

func newModel() *model {
	return &model{
		jobs: newJobTable(), recurring: map[string]*recurringJob{}, queues: map[string]*queue{},
		paused: map[string]bool{}, held: map[string]*sortedSet{}, tags: map[string]*sortedSet{},
		failures: map[string]*sortedSet{}, stats: map[statKey]*statistics{}, statDays: map[string]*sortedSet{},
	}
}

// setKind is a list of a queue.
type setKind uint8

// The lists of a queue: waiting jobs by priority and age; running ones by the end of their locks; scheduled ones and
// recurring definitions by the time when they are due; blocked ones by the time of their put.
const (
	waitingSet setKind = iota
	lockSet
	scheduledSet
	dependsSet
	recurringSet

	setKinds
	jobSets = recurringSet // the lists of jobs are those before
)

// queue is the lists of a queue.
type queue struct{ sets [setKinds]sortedSet }

func (q *queue) empty() bool {
	for i := range q.sets {
		if q.sets[i].len() > 0 {
			return false
		}
	}
	return true
}

// noQueue stands for queues that have nothing. It is never changed.
var noQueue queue

// set is a list of a queue, for reading.
func (m *model) set(queue string, kind setKind) *sortedSet {
	q := m.queues[queue]
	if q == nil {
		q = &noQueue
	}
	return &q.sets[kind]
}

// noSet is a list without members. It is never changed.
var noSet sortedSet

// setOf is a set out of a map, for reading.
func setOf(sets map[string]*sortedSet, name string) *sortedSet {
	if z := sets[name]; z != nil {
		return z
	}
	return &noSet
}
