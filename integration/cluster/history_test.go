package cluster_test

import (
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// kind is what a client did with a job.
type kind uint8

const (
	submitted kind = iota
	leased
	finished
)

// operation is one operation on a job, from when it was sent until its reply came. One without a reply may take effect
// at any time after it was sent, or never.
type operation struct {
	kind      kind
	job       string
	exclusive bool // a lease that ends neither with its connection nor with its leader
	acked     bool
	client    int
	from, to  time.Time
}

// history is what all clients did.
type history struct {
	mu         sync.Mutex // guards the fields below
	operations []operation
	keys       map[string][]*keyOperation
}

func (h *history) add(d operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, d)
}

// count counts the operations of a kind that were acknowledged.
func (h *history) count(k kind) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.operations {
		if h.operations[i].kind == k && h.operations[i].acked {
			n++
		}
	}
	return n
}

// States of a job in the model.
const (
	absent = iota
	waiting
	inHand
	ended
)

// model is what a single broker that never fails would do with one job.
var model = porcupine.Model{
	Init: func() any { return absent },
	Step: func(state, input, _ any) (bool, any) {
		d, s := input.(*operation), state.(int)
		switch d.kind {
		case submitted:
			return s == absent, waiting
		case leased:
			if !d.exclusive { // the lease before may have ended with its connection, or with its leader
				return s == waiting || s == inHand, inHand
			}
			return s == waiting, inHand
		case finished:
			return s == inHand || s == ended || !d.acked && s == waiting, ended
		}
		return false, s
	},
	Equal: func(a, b any) bool { return a == b },
}

// verify checks the history of every job, and returns the acknowledged jobs that were never handed out.
func (h *history) verify(t *testing.T) (unseen []string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	end := time.Now().Add(time.Hour)
	jobs := make(map[string][]porcupine.Operation)
	seen, promised := make(map[string]bool), make(map[string]bool)
	for i := range h.operations {
		d := &h.operations[i]
		to := d.to
		if !d.acked {
			to = end
		}
		jobs[d.job] = append(jobs[d.job],
			porcupine.Operation{ClientId: d.client, Input: d, Call: d.from.UnixNano(), Return: to.UnixNano()})
		seen[d.job] = seen[d.job] || d.kind == leased
		promised[d.job] = promised[d.job] || d.kind == submitted && d.acked
	}
	bad := 0
	for job, ops := range jobs {
		if !porcupine.CheckOperations(model, ops) {
			if bad++; bad < 4 {
				t.Errorf("history of job %s cannot be", job)
				for _, o := range ops {
					t.Logf("  %+v", *o.Input.(*operation))
				}
			}
		}
		if promised[job] && !seen[job] {
			unseen = append(unseen, job)
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d histories cannot be", bad, len(jobs))
	}
	return unseen
}

func TestCheckerFindsInvalidHistories(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	submit := operation{kind: submitted, acked: true, from: at(1), to: at(2)}
	lease := func(from int, exclusive bool) operation {
		return operation{kind: leased, acked: true, exclusive: exclusive, from: at(from), to: at(from + 1)}
	}
	finish := func(from int, acked bool) operation {
		return operation{kind: finished, acked: acked, from: at(from), to: at(from + 1)}
	}
	for name, c := range map[string]struct {
		operations []operation
		can        bool
	}{
		"in order": {[]operation{submit, lease(3, true), finish(5, true)}, true},
		"leased after its end": {
			[]operation{submit, lease(3, true), finish(5, true), lease(7, true)}, false,
		},
		"leased twice at once":          {[]operation{submit, lease(3, true), lease(5, true)}, false},
		"leased twice over connections": {[]operation{submit, lease(3, false), lease(5, false)}, true},
		"leased after an end without ack": {
			[]operation{submit, lease(3, false), finish(5, false), lease(7, false)}, true,
		},
		"leased before it was submitted": {
			[]operation{{kind: submitted, acked: true, from: at(8), to: at(9)}, lease(3, true)}, false,
		},
		"leased before the reply": {
			[]operation{{kind: submitted, acked: true, from: at(1), to: at(9)}, lease(3, true)}, true,
		},
		"submitted without ack": {[]operation{{kind: submitted, from: at(1)}, lease(3, true), finish(5, true)}, true},
	} {
		var ops []porcupine.Operation
		for i := range c.operations {
			d := &c.operations[i]
			to := d.to
			if !d.acked {
				to = at(1000)
			}
			ops = append(ops,
				porcupine.Operation{ClientId: i, Input: d, Call: d.from.UnixNano(), Return: to.UnixNano()})
		}
		if porcupine.CheckOperations(model, ops) != c.can {
			t.Errorf("%s: %v", name, !c.can)
		}
	}
}
