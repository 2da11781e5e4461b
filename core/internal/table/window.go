package table

import (
	"encoding/json"
	"fmt"

	"broker/core"
	"broker/core/internal/slot"
	"broker/core/internal/timer"
)

// A window reserves a unique key in a queue for a time, whatever happens to the job that opened it; see
// core.Submit.Window. It is stored as a meta entry of its own, named by the number of that job. A job without a window
// only pays for a lookup in an empty map.

// windows are all windows.
type windows struct {
	all   slot.Map[Window]
	byKey map[Digest]uint32
}

// Window is a window that has not ended.
type Window struct {
	key       Digest // of queue and key
	Seq       uint64 // number of the job that opened it
	ID        string // id of that job if the client chose it
	CreatedAt core.Instant
	until     core.Instant
	made      core.Commit // commit that stores the window
	timer     timer.ID
}

// storedWindow is the stored form. Keys and ids are bytes that need not be text.
type storedWindow struct {
	Queue     []byte       `json:"queue"`
	Key       []byte       `json:"key"`
	Seq       uint64       `json:"seq"`
	ID        []byte       `json:"id,omitempty"`
	CreatedAt core.Instant `json:"created_at"`
	Until     core.Instant `json:"until"`
}

// WindowPrefix is the prefix of the names of the meta entries of windows. It is on disk and never changes.
const WindowPrefix = "core/window/"

func windowName(seq uint64) string { return fmt.Sprintf("%s%016x", WindowPrefix, seq) }

func newWindows() windows { return windows{byKey: map[Digest]uint32{}} }

func windowKey(queue, key string) Digest { return DigestOf(queue + "\x00" + key) }

// WindowOf returns the window that reserves the key of a submission, or nil.
func (t *Table) WindowOf(j *core.Job) *Window {
	if len(t.windows.byKey) == 0 || j.UniqueKey == "" {
		return nil
	}
	h := t.windows.byKey[windowKey(j.Queue, j.UniqueKey)]
	if h == 0 || t.windows.all.At(h).until <= t.Now {
		return nil
	}
	return t.windows.all.At(h)
}

// OpenWindow reserves the key of a new job until an instant.
func (t *Table) OpenWindow(j *core.Job, until core.Instant) {
	key := windowKey(j.Queue, j.UniqueKey)
	if h := t.windows.byKey[key]; h != 0 { // it has ended, but its deadline has not been handled yet
		t.closeWindow(h)
	}
	t.LogMeta(core.MetaEntry{Name: windowName(j.Seq), Value: Encode(storedWindow{
		Queue: []byte(j.Queue), Key: []byte(j.UniqueKey), Seq: j.Seq, ID: []byte(j.ID), CreatedAt: j.CreatedAt,
		Until: until,
	})})
	t.addWindow(Window{key: key, Seq: j.Seq, ID: j.ID, CreatedAt: j.CreatedAt, until: until, made: t.Open})
}

func (t *Table) addWindow(w Window) {
	x := &t.windows
	h := x.all.Add(&w)
	x.byKey[w.key] = h
	w.timer = t.Timers.Add(w.until, timer.Owner{Kind: TimerWindow, Handle: h})
}

// closeWindow ends a window.
func (t *Table) closeWindow(h uint32) {
	x := &t.windows
	w := x.all.At(h)
	t.Timers.Remove(&w.timer)
	delete(x.byKey, w.key)
	x.all.Remove(h)
	t.LogMeta(core.MetaEntry{Name: windowName(w.Seq)})
}

// WindowTimeout handles the deadline of a window.
func (t *Table) WindowTimeout(h uint32) {
	t.windows.all.At(h).timer = 0
	t.closeWindow(h)
}

// RestoreWindow restores a stored window.
func (t *Table) RestoreWindow(value []byte) error {
	var s storedWindow
	if err := json.Unmarshal(value, &s); err != nil {
		return err
	}
	t.addWindow(Window{
		key: windowKey(string(s.Queue), string(s.Key)), Seq: s.Seq, ID: string(s.ID), CreatedAt: s.CreatedAt,
		until: s.Until,
	})
	return nil
}

// CheckWindows verifies the windows, and returns the number of deadlines in use.
func (t *Table) CheckWindows(fail func(format string, args ...any)) (timers int) {
	for w := range t.windows.all.All() {
		if w.timer != 0 {
			timers++
		}
		if h := t.windows.byKey[w.key]; h == 0 || t.windows.all.At(h) != w {
			fail("the window of job %d is not found", w.Seq)
		}
	}
	if n := t.windows.all.Len(); n != len(t.windows.byKey) {
		fail("%d windows, %d keys", n, len(t.windows.byKey))
	}
	return timers
}

// WindowPending returns the commit that a reply about a window depends on.
func (t *Table) WindowPending(w *Window) core.Commit { return t.Pending(w.made) }

// WindowCommit returns the commit that stores the window that a job has opened; zero if it is stored, or if there is
// none. The job has not been changed by the decision that asks.
func (t *Table) WindowCommit(e *Entry, j *core.Job) core.Commit {
	if j == nil || !e.Has(Dirty|inflight) {
		return 0
	}
	w := t.WindowOf(j)
	if w == nil || w.Seq != e.Seq {
		return 0
	}
	return t.WindowPending(w)
}
