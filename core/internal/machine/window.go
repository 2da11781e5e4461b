package machine

import (
	"encoding/json"
	"fmt"

	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// A window holds a unique key in a queue for a time, whatever becomes of the job that opened it; see core.Submit.Window. It is
// stored as an entry of its own, named by the number of that job. A job without a window pays for a look at an empty map.

// windows are all windows.
type windows struct {
	all   []*window // by handle, from 1
	free  []uint32
	byKey map[table.Digest]uint32
}

// window is one that has not ended.
type window struct {
	key       table.Digest // of queue and key
	seq       uint64       // of the job that opened it
	id        string       // that job's own
	createdAt core.Instant
	until     core.Instant
	made      core.Commit // that holds it
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

const windowPrefix = "core/window/"

func windowName(seq uint64) string { return fmt.Sprintf("%s%016x", windowPrefix, seq) }

func newWindows() windows { return windows{all: make([]*window, 1), byKey: map[table.Digest]uint32{}} }

func (m *Machine) windowKey(queue, key string) table.Digest {
	return m.table.DigestOf(queue + "\x00" + key)
}

// windowOf is the window that holds the key of a submission, or nil.
func (m *Machine) windowOf(j *core.Job) *window {
	if len(m.windows.byKey) == 0 || j.UniqueKey == "" {
		return nil
	}
	h := m.windows.byKey[m.windowKey(j.Queue, j.UniqueKey)]
	if h == 0 || m.windows.all[h].until <= m.table.Now {
		return nil
	}
	return m.windows.all[h]
}

// openWindow holds the key of a new job until an instant.
func (m *Machine) openWindow(j *core.Job, until core.Instant) {
	key := m.windowKey(j.Queue, j.UniqueKey)
	if h := m.windows.byKey[key]; h != 0 { // it is over, and its deadline has not been looked at
		m.closeWindow(h)
	}
	value, err := json.Marshal(storedWindow{
		Queue: []byte(j.Queue), Key: []byte(j.UniqueKey), Seq: j.Seq, ID: []byte(j.ID), CreatedAt: j.CreatedAt, Until: until,
	})
	if err != nil {
		panic("machine: a window cannot be encoded: " + err.Error())
	}
	m.table.LogMeta(core.MetaEntry{Name: windowName(j.Seq), Value: value})
	m.addWindow(window{key: key, seq: j.Seq, id: j.ID, createdAt: j.CreatedAt, until: until, made: m.table.Open})
}

func (m *Machine) addWindow(w window) {
	x := &m.windows
	h := uint32(len(x.all)) //nolint:gosec // handles have 32 bits
	if n := len(x.free); n > 0 {
		h, x.free = x.free[n-1], x.free[:n-1]
		x.all[h] = &w
	} else {
		x.all = append(x.all, &w)
	}
	x.byKey[w.key] = h
	w.timer = m.table.Timers.Add(w.until, timer.Owner{Kind: table.TimerWindow, Handle: h})
}

// closeWindow ends a window.
func (m *Machine) closeWindow(h uint32) {
	x := &m.windows
	w := x.all[h]
	m.table.Timers.Remove(&w.timer)
	delete(x.byKey, w.key)
	x.all[h] = nil
	x.free = append(x.free, h)
	m.table.LogMeta(core.MetaEntry{Name: windowName(w.seq)})
}

// windowTimeout is the deadline of a window.
func (m *Machine) windowTimeout(h uint32) {
	m.windows.all[h].timer = 0
	m.closeWindow(h)
}

func (m *Machine) restoreWindow(value []byte) error {
	var s storedWindow
	if err := json.Unmarshal(value, &s); err != nil {
		return err
	}
	m.addWindow(window{
		key: m.windowKey(string(s.Queue), string(s.Key)), seq: s.Seq, id: string(s.ID), createdAt: s.CreatedAt, until: s.Until,
	})
	return nil
}

// coalesceOver replies with the job that a submission joins and that has ended.
func (m *Machine) coalesceOver(c *client, op *core.Submit, w *window) {
	r := core.Reply{
		Kind: core.Submitted, Tag: op.Tag, Seq: w.seq, Existing: true, Commit: m.table.Pending(w.made),
		Job: &core.Job{Seq: w.seq, ID: w.id, Queue: op.Job.Queue, CreatedAt: w.createdAt},
	}
	if len(op.Meta) > 0 {
		m.table.WriteMeta(op.Meta)
		r.Commit = m.table.Promise()
	}
	m.reply(c, r)
}

// eachWindow checks the windows.
func (c *checker) eachWindow() {
	n := 0
	for h, w := range c.m.windows.all {
		if w == nil {
			continue
		}
		n++
		c.timer(w.timer != 0)
		if c.m.windows.byKey[w.key] != uint32(h) { //nolint:gosec // handles have 32 bits
			c.fail("the window of job %d is not found", w.seq)
		}
	}
	if n != len(c.m.windows.byKey) {
		c.fail("%d windows, %d keys", n, len(c.m.windows.byKey))
	}
}
