package limit

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"broker/core"
)

// reference hands out jobs by looking at every lane: it opens all lanes of a bucket whenever a lease ends, and closes
// those that it finds full. It is what laneGroup replaces.
type reference struct {
	fair    bool
	byType  bool
	byKey   bool
	limits  map[string]core.Throttle // of buckets
	leased  map[string]uint32        // cost, by bucket
	holds   map[string]int           // jobs, by bucket and worker
	turns   map[string]uint64        // by key
	strides map[string]uint64
	turn    uint64
	lanes   []*referenceLane
}

type referenceLane struct {
	typ, key string
	buckets  []string
	jobs     []referenceJob
	open     bool
}

type referenceJob struct {
	seq            uint64
	priority, cost int
	lane           *referenceLane
}

func compareJobs(a, b referenceJob) int {
	return cmp.Or(b.priority-a.priority, cmp.Compare(a.seq, b.seq))
}

func (m *reference) submit(typ, key string, j referenceJob) {
	if !m.byType {
		typ = ""
	}
	if !m.byKey {
		key = ""
	}
	i := slices.IndexFunc(m.lanes, func(l *referenceLane) bool { return l.typ == typ && l.key == key })
	if i < 0 {
		i = len(m.lanes)
		buckets := []string{"type " + typ, "key " + key, "shared"}
		m.lanes = append(m.lanes, &referenceLane{typ: typ, key: key, buckets: buckets})
	}
	l := m.lanes[i]
	if len(l.jobs) == 0 {
		m.reopen(l)
	}
	j.lane = l
	l.jobs = append(l.jobs, j)
	slices.SortFunc(l.jobs, compareJobs)
	l.open = true // a search closes it again
}

// reopen raises the turn of a key that had nothing to hand out.
func (m *reference) reopen(l *referenceLane) {
	isOpen := func(o *referenceLane) bool { return o.key == l.key && o.open && len(o.jobs) > 0 }
	if !slices.ContainsFunc(m.lanes, isOpen) {
		m.turns[l.key] = max(m.turns[l.key], m.turn)
	}
	l.open = true
}

func (m *reference) full(l *referenceLane) bool {
	for _, b := range l.buckets {
		limit, leased, cost := m.limits[b].Leased, m.leased[b], uint32(l.jobs[0].cost)
		if limit > 0 && leased > 0 && leased+cost > limit {
			return true
		}
	}
	return false
}

func (m *reference) workerFull(l *referenceLane, worker int) bool {
	for _, b := range l.buckets {
		if most := m.limits[b].LeasedPerWorker; most > 0 && m.holds[fmt.Sprint(b, worker)] >= int(most) {
			return true
		}
	}
	return false
}

func (m *reference) isBefore(a, b *referenceLane) bool {
	return cmp.Or(cmp.Compare(m.turns[a.key], m.turns[b.key]), compareJobs(a.jobs[0], b.jobs[0])) < 0
}

// pick returns the next job for a worker, without leasing it.
func (m *reference) pick(worker int) (first *referenceJob) {
	var best *referenceLane
	for _, l := range m.lanes {
		if len(l.jobs) == 0 || !l.open {
			continue
		}
		if m.full(l) {
			l.open = false
			continue
		}
		if m.workerFull(l, worker) {
			continue
		}
		if best == nil || m.isBefore(l, best) {
			best = l
		}
	}
	if best == nil {
		return nil
	}
	return &best.jobs[0]
}

func (m *reference) lease(seq uint64, worker int) (j referenceJob) {
	for _, l := range m.lanes {
		i := slices.IndexFunc(l.jobs, func(j referenceJob) bool { return j.seq == seq })
		if i < 0 {
			continue
		}
		j = l.jobs[i]
		l.jobs = slices.Delete(l.jobs, i, i+1)
		for _, b := range l.buckets {
			m.leased[b] += uint32(j.cost)
			m.holds[fmt.Sprint(b, worker)]++
		}
		if m.fair {
			m.turn = max(m.turn, m.turns[l.key])
			m.turns[l.key] = m.turn + m.strides[l.key]
		}
	}
	return j
}

func (m *reference) finish(j referenceJob, worker int) {
	for _, b := range j.lane.buckets {
		m.leased[b] -= uint32(j.cost)
		m.holds[fmt.Sprint(b, worker)]--
	}
	key := j.lane.key
	waits := func(l *referenceLane) bool { return l.key == key && len(l.jobs) > 0 }
	if m.leased["key "+key] == 0 && !slices.ContainsFunc(m.lanes, waits) {
		delete(m.turns, key) // it has no job
	}
	for _, l := range m.lanes {
		if !l.open && len(l.jobs) > 0 {
			m.reopen(l)
		}
	}
}

// handOut is a random history of a queue with limits, beside the reference.
type handOut struct {
	*fixture
	rng    *rand.Rand
	model  *reference
	types  int
	cost   int
	leased map[uint64]int // workers
	jobs   map[uint64]referenceJob
}

func newHandOut(t *testing.T, seed uint64, fair, mixed bool) *handOut {
	rng := rand.New(rand.NewPCG(seed, 1))
	model := &reference{
		fair: fair, byKey: fair, limits: map[string]core.Throttle{}, leased: map[string]uint32{},
		holds: map[string]int{}, turns: map[string]uint64{}, strides: map[string]uint64{},
	}
	x := &handOut{
		fixture: setup(t), rng: rng, types: 1, cost: 1, model: model, leased: map[uint64]int{},
		jobs: map[uint64]referenceJob{},
	}
	if mixed {
		x.types, x.cost = 3, 3
	}
	weights := map[string]uint32{}
	for i := range 8 {
		key := fmt.Sprint(i)
		x.model.strides[key] = oneTurn
		if fair && rng.IntN(4) == 0 {
			weights[key] = 3
			x.model.strides[key] = oneTurn / 3
		}
	}
	x.share(core.Sharing{Queue: "q", Key: core.JobKey{Kind: core.KeyTag, Tag: "c"}, Fair: fair, Weights: weights})
	for i := range x.types {
		if throttle := x.throttle(6, fair && mixed); throttle != (core.Throttle{}) {
			x.limit(core.Limit{Selector: core.InQueue("q", core.ScopeType, fmt.Sprint(i)), Throttle: throttle})
			x.model.limits[fmt.Sprint("type ", i)] = throttle
			x.model.byType = true
		}
	}
	if throttle := x.throttle(3, fair && mixed); throttle != (core.Throttle{}) {
		x.limit(core.Limit{Selector: core.InQueue("q", core.ScopeKey, ""), Throttle: throttle})
		x.model.byKey = true
		for i := range 8 {
			x.model.limits[fmt.Sprint("key ", i)] = throttle
		}
	}
	if throttle := x.throttle(8, false); throttle != (core.Throttle{}) {
		x.limit(core.Limit{Name: "s", Selector: core.Selector{Queues: []string{"q"}}, Throttle: throttle})
		x.model.limits["shared"] = throttle
	}
	return x
}

// throttle returns a random limit, or none.
func (x *handOut) throttle(most int, perWorker bool) (limit core.Throttle) {
	if x.rng.IntN(3) > 0 {
		limit.Leased = uint32(1 + x.rng.IntN(most))
	}
	if perWorker && x.rng.IntN(3) == 0 {
		limit.LeasedPerWorker = uint32(1 + x.rng.IntN(2))
	}
	return limit
}

// step submits, leases or finishes a job. It compares the job that a worker gets with that of the reference; with
// anyOf only whether the worker gets one.
func (x *handOut) step(anyOf bool) {
	switch k := x.rng.IntN(10); {
	case k < 4:
		seq := uint64(len(x.jobs) + 1)
		j := referenceJob{seq: seq, priority: x.rng.IntN(3), cost: 1 + x.rng.IntN(x.cost)}
		typ, key := fmt.Sprint(x.rng.IntN(x.types)), fmt.Sprint(x.rng.IntN(8))
		x.submit(fmt.Sprintf("q type=%s tag=c:%s priority=%d cost=%d", typ, key, j.priority, j.cost))
		x.jobs[j.seq] = j
		x.model.submit(typ, key, j)
	case k < 8:
		worker := x.rng.IntN(3)
		want, have := uint64(0), uint64(0)
		if j := x.model.pick(worker); j != nil {
			want = j.seq
		}
		if h := x.next("q", worker); h != 0 {
			have = x.table.At(h).Seq
		}
		if have != want && (!anyOf || have == 0 || want == 0) {
			x.Fatalf("worker %d gets job %d, want %d", worker, have, want)
		}
		if have != 0 {
			x.jobs[have] = x.model.lease(have, worker)
			x.leased[have] = worker
		}
	default:
		held := slices.Sorted(maps.Keys(x.leased))
		if len(held) == 0 {
			return
		}
		seq := held[x.rng.IntN(len(held))]
		x.finish(seq)
		x.model.finish(x.jobs[seq], x.leased[seq])
		delete(x.leased, seq)
	}
}

// TestGroupsHandOutJobsLikeASearchOfAllLanes compares the order of jobs with that of a search that examines each
// lane. Keys that take turns have one type and one cost here; see the next test.
func TestGroupsHandOutJobsLikeASearchOfAllLanes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		fair := seed%2 == 0
		x := newHandOut(t, seed, fair, !fair)
		for range 300 {
			x.step(false)
		}
	}
}

// TestSearchFindsAJobWheneverLimitsAllowOne has keys that take turns with several types and costs, and limits for
// workers. Keys under a full limit of their type keep their turns among each other, while the reference forgets them:
// only whether there is a job is compared.
func TestSearchFindsAJobWheneverLimitsAllowOne(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		x := newHandOut(t, seed, true, true)
		for range 300 {
			x.step(true)
		}
	}
}
