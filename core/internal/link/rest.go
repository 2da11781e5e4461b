package link

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// The end or the death of a job with many dependents takes several steps, so that no operation holds the lock for
// long. An operation goes on until it has touched as much as a step may; the rest is left for later steps. A step
// begins when TimerLinks is due.
//
//	operation: some dependents ─▶ rest, meta entry; TimerLinks: Due, Continue, … ─▶ no entry
//
// A dependent that is left does not change before its turn: it is blocked, and still waits for the job. The job may be
// gone by then, so its rest has the list of the dependents that are left. The meta entry is in the batch of the end or
// the death; its removal is in the batch of the last dependent. In between, a start finds the rest by the entry, and
// does all of it.

// Prefix is the prefix of the names of the meta entries of rests. It is on disk and never changes.
const Prefix = "core/ended/"

// usualStep is how many jobs and links an operation or a step touches.
const usualStep = 1000

// Steps write at most pauseBytes that are not on disk yet, so that batches stay small and clients do not wait long.
const (
	pauseBytes = 1 << 20
	pauseFor   = time.Millisecond
)

// restKind is the subject of a rest. The words are in names of meta entries and never change.
type restKind string

const (
	ofSuccessors restKind = "successors" // of a job that is closed
	ofChildren   restKind = "children"   // of a job that is finished
	ofDeath      restKind = "death"      // what a death breaks
	ofClosing    restKind = "closing"    // of a parent, see Optional.ClosesLater; a start needs no entry to find it
)

// restKey identifies a rest.
type restKey struct {
	of   uint64 // number of the job
	kind restKind
}

// rest is what is left of the end or the death of a job.
type rest struct {
	restKey
	restMeta
	jobs  *table.Dependents // ofSuccessors, ofChildren: the dependents that are left
	death death             // ofDeath
}

// restMeta is the stored form of a rest.
type restMeta struct {
	Success  bool `json:"success,omitempty"`  // the job was done
	Unstored bool `json:"unstored,omitempty"` // records of its dependents may say that it is unstored
}

// name is the name of the meta entry of a rest.
func (k restKey) name() string { return fmt.Sprintf("%s%d/%s", Prefix, k.of, k.kind) }

// StepOver reports whether the current operation or step leaves everything else for later.
func (l *Links) StepOver() bool { return l.Spent(l.step) && l.host.TakesSteps() }

// Spent reports whether the current operation has touched at least n jobs and links.
func (l *Links) Spent(n int) bool { return l.table.Touched+l.table.Linked >= n }

// Step is about how many jobs and links an operation or a step touches.
func (l *Links) Step() int { return l.usual }

// restFor returns the rest of job seq that has job x, or should have it; nil: there is none.
func (l *Links) restFor(x *table.Optional, seq uint64) *rest {
	switch {
	case len(l.rests) == 0:
		return nil
	case seq == x.Parent:
		return l.rests[restKey{seq, ofChildren}]
	}
	return l.rests[restKey{seq, ofSuccessors}]
}

// later leaves a rest for later steps.
func (l *Links) later(r *rest) {
	if known := l.rests[r.restKey]; known != nil {
		known.death = r.death // the job has died again
		return
	}
	l.addRest(r)
	if r.kind != ofClosing {
		l.table.LogMeta(core.MetaEntry{Name: r.name(), Value: table.Encode(r.restMeta)})
	}
	l.wakeAt(l.table.Now)
}

func (l *Links) addRest(r *rest) {
	l.rests[r.restKey] = r
	l.queue = append(l.queue, r)
}

// wakeAt sets the time of the next step.
func (l *Links) wakeAt(at core.Instant) {
	if l.timer == 0 {
		l.timer = l.table.Timers.Add(at, timer.Owner{Kind: table.TimerLinks})
	}
}

// Due begins a step, for which TimerLinks was due. It returns false if the step is delayed because commits are behind,
// or if nothing may change any more.
func (l *Links) Due(stopped bool) bool {
	l.timer = 0
	if stopped {
		return false
	}
	at, isBehind := l.Behind()
	if isBehind {
		l.wakeAt(at)
	}
	return !isBehind
}

// Behind reports whether commits are so far behind that a step is delayed, and until when; otherwise until now.
func (l *Links) Behind() (core.Instant, bool) {
	if l.table.Promise() != 0 && l.table.UnsealedBytes() >= pauseBytes {
		return l.table.Now.Add(pauseFor), true
	}
	return l.table.Now, false
}

// Continue handles the next job of a step; false: the step is over. It may break a job: the caller calls NextBroken
// before it calls Continue again.
func (l *Links) Continue() bool {
	switch {
	case len(l.queue) == 0:
		return false
	case l.StepOver():
		l.wakeAt(l.table.Now)
		return false
	}
	r := l.queue[0]
	if l.continueRest(r) {
		return true
	}
	delete(l.rests, r.restKey)
	if l.queue = l.queue[1:]; len(l.queue) == 0 {
		l.queue = nil
	}
	if r.kind != ofClosing {
		l.table.LogMeta(core.MetaEntry{Name: r.name()})
	}
	return true
}

// continueRest handles the next job of a rest; false: none is left.
func (l *Links) continueRest(r *rest) bool {
	switch r.kind {
	case ofSuccessors, ofChildren:
		return l.notifyNext(r)
	case ofDeath:
		b, more := l.next(&r.death)
		if b.Seq != 0 {
			l.breaking = append(l.breaking, b)
		}
		return more
	case ofClosing:
		if h := l.table.Handle(r.of); h != 0 && l.table.Optional(h).ClosesLater {
			if due := l.closeDone(h); due != 0 {
				l.closeLater(due)
			}
		}
	}
	return false
}

// RestoreRest restores a rest from its meta entry.
func (l *Links) RestoreRest(name string, value []byte) error {
	number, kind, _ := strings.Cut(strings.TrimPrefix(name, Prefix), "/")
	of, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return err
	}
	r := &rest{restKey: restKey{of, restKind(kind)}, death: death{of, of}}
	l.addRest(r)
	return json.Unmarshal(value, &r.restMeta)
}

// AtOnce lets steps and operations go on until nothing is left, or no longer.
func (l *Links) AtOnce(on bool) {
	l.step = l.usual
	if on {
		l.step = math.MaxInt
		slices.SortFunc(l.queue, func(a, b *rest) int {
			return cmp.Or(cmp.Compare(a.of, b.of), cmp.Compare(a.kind, b.kind))
		})
	}
}
