package qless

// model holds all data that Qless clients see. It is in memory. Data that the broker's jobs do not contain is also
// stored as documents, in the commit of the change. Frontend.mu guards the model.
type model struct {
	jobs      jobTable
	recurring map[string]*recurringJob
	queues    map[string]*queue
	seen      sortedSet       // queues, by their first use
	paused    map[string]bool // by queue
	workers   sortedSet       // by the time of their last pop or heartbeat
	held      map[string]*sortedSet
	completed sortedSet
	tracked   sortedSet
	tags      map[string]*sortedSet // the jobs of each tag, by the time of tagging
	tagCounts sortedSet
	failures  map[string]*sortedSet // the failed jobs of each group, by failureCount
	config    config
	stats     map[statKey]*statistics
	statDays  map[string]*sortedSet // for each queue, the days with statistics

	failureCount float64 // number of failures so far; gives failed jobs their order
	lastNow      float64 // the greatest now of any caller
}

func newModel() *model {
	return &model{
		jobs: newJobTable(), recurring: map[string]*recurringJob{}, queues: map[string]*queue{},
		paused: map[string]bool{}, held: map[string]*sortedSet{}, tags: map[string]*sortedSet{},
		failures: map[string]*sortedSet{}, stats: map[statKey]*statistics{}, statDays: map[string]*sortedSet{},
	}
}

// setKind is a kind of list that each queue has.
type setKind uint8

// The lists of a queue: waiting jobs by priority and age; running jobs by the end of their locks; scheduled jobs and
// recurring definitions by their due time; blocked jobs by the time of their put.
const (
	waitingSet setKind = iota
	lockSet
	scheduledSet
	dependsSet
	recurringSet

	setKinds
	jobSets = recurringSet // the lists before recurringSet contain jobs
)

// queue holds the lists of a queue.
type queue struct{ sets [setKinds]sortedSet }

func (q *queue) empty() bool {
	for i := range q.sets {
		if q.sets[i].len() > 0 {
			return false
		}
	}
	return true
}

// queue returns a queue, for changing. It creates the queue if it does not exist.
func (m *model) queue(name string) *queue {
	q := m.queues[name]
	if q == nil {
		q = &queue{}
		m.queues[own(name)] = q
	}
	return q
}

// noQueue stands for queues without any data. It is never changed.
var noQueue queue

// set returns a list of a queue, for reading.
func (m *model) set(queue string, kind setKind) *sortedSet {
	q := m.queues[queue]
	if q == nil {
		q = &noQueue
	}
	return &q.sets[kind]
}

// noSet is a list without members. It is never changed.
var noSet sortedSet

// setOf returns a set from a map, for reading.
func setOf(sets map[string]*sortedSet, name string) *sortedSet {
	if z := sets[name]; z != nil {
		return z
	}
	return &noSet
}
