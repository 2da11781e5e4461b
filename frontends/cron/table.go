package cron

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"broker/core"
)

// Grace is for how long a run that could not take place is made up for.
const Grace = time.Minute

// Bounds of the clock and the retries.
const (
	retryAfter = time.Second // until a run that was refused is tried again
	believable = time.Hour   // a position that is further ahead than this is from a clock that was wrong
)

// Schedule tells when an entry is due.
type Schedule interface {
	// Next is the first instant after t; the zero time if there is none. It depends on t alone.
	Next(t time.Time) time.Time
}

// Entry is a job and its times.
type Entry struct {
	Spec     string // what Schedule was made of
	Schedule Schedule
	Type     string // of the job, for people
	Queue    string // likewise; empty: the default of whoever prepares the job
	Unit     []byte // what the job is made of
}

// Listener hears what becomes of the entries. Its methods must not call the table.
type Listener interface {
	// Submitted tells of a job that was submitted for the instant due.
	Submitted(e Entry, due core.Instant, seq uint64)
	// Refused tells of a job that was not. It is told once for each instant.
	Refused(e Entry, due core.Instant, err error)
	// Missed tells that nothing is submitted for the instants from first up to now, or up to those made up for.
	Missed(e Entry, first core.Instant)
}

// Options of a table.
type Options struct {
	Broker   core.Broker
	Prepare  func(unit []byte) (*core.Job, error)
	Listener Listener
}

// Table submits the jobs of its entries. Any goroutine.
type Table struct {
	o Options

	mu      sync.Mutex // guards the rest
	client  core.ClientID
	entries []*entry
	now     core.Instant // of the last Tick
}

// entry is one that is in force.
type entry struct {
	Entry
	key     string
	next    core.Instant // not dealt with yet; zero: never
	refused core.Instant // the instant whose refusal was told
	lastRun core.Instant // when a job was submitted; zero: not since this start
}

// Status is a row for people.
type Status struct {
	Entry
	Next    core.Instant // zero: never
	LastRun core.Instant // zero: not since this start
}

// Changes counts what Load has changed.
type Changes struct{ Added, Removed, Kept int }

// New makes an empty table.
func New(o Options) *Table {
	return &Table{o: o, client: o.Broker.Open(core.ClientOptions{Protocol: core.Internal, Wake: func() {}})}
}

// Load puts entries in force. Those that were already go on as if nothing had happened; new ones start now, or where they
// stood when the broker was last running with them.
func (t *Table) Load(entries []Entry) Changes {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := make(map[string]*entry, len(t.entries))
	for _, e := range t.entries {
		old[e.key] = e
	}
	var (
		c      Changes
		loaded = make([]*entry, 0, len(entries))
		marks  []core.MetaEntry
		twins  = make(map[string]int)
		keys   strings.Builder
	)
	for _, given := range entries {
		key := keyOf(given)
		twins[key]++
		key += "-" + strconv.Itoa(twins[key])
		e := old[key]
		if e != nil {
			c.Kept++
			delete(old, key)
		} else {
			c.Added++
			e = &entry{Entry: given, key: key}
			marks = append(marks, t.start(e)...)
		}
		loaded = append(loaded, e)
		keys.WriteString(key + "\n")
	}
	c.Removed = len(old)
	t.entries = loaded
	t.store(append(marks, t.forget(loaded, keys.String())...))
	return c
}

// Tick submits what is due and tells when to call it again; zero: there is nothing to wait for. Called too early or too
// late it does no harm.
func (t *Table) Tick() core.Instant {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.o.Broker.Now()
	wrong := now.Add(believable) < t.now // the clock was ahead, and is not any more
	t.now = now
	var again core.Instant
	for _, e := range t.entries {
		if wrong {
			e.advance(now)
		}
		if e.next != 0 && e.next <= now {
			t.run(e, now)
		}
		at := e.next
		if at != 0 && at <= now {
			at = now.Add(retryAfter)
		}
		if at != 0 && (again == 0 || at < again) {
			again = at
		}
	}
	return again
}

// Entries lists what is in force, in the order of the configuration.
func (t *Table) Entries() []Status {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows := make([]Status, len(t.entries))
	for i, e := range t.entries {
		rows[i] = Status{Entry: e.Entry, Next: e.next, LastRun: e.lastRun}
	}
	return rows
}

// Close ends the table's use of the broker.
func (t *Table) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries = nil
	t.o.Broker.Close(t.client)
}

// run submits the job of an entry that is due, once for all that it has missed.
func (t *Table) run(e *entry, now core.Instant) {
	due := e.newest(now)
	if due != e.next {
		t.o.Listener.Missed(e.Entry, e.next)
	}
	if due == 0 { // all of it is too old
		e.advance(now)
		return
	}
	e.next = due
	job, err := t.o.Prepare(e.Unit)
	if err != nil {
		t.skip(e, due, err)
		return
	}
	mark := e.mark(due)
	r := t.ask(&core.Submit{Job: job, Meta: []core.MetaEntry{mark}})
	switch {
	case r.Kind == core.Submitted:
		e.lastRun = due
		e.advance(due)
		t.o.Listener.Submitted(e.Entry, due, r.Seq)
	case worthAnotherTry(r.Err):
		t.tell(e, due, r.Err)
	default:
		t.skip(e, due, r.Err)
	}
}

// skip leaves one instant out.
func (t *Table) skip(e *entry, due core.Instant, err error) {
	t.tell(e, due, err)
	e.advance(due)
	t.store([]core.MetaEntry{e.mark(due)})
}

func (t *Table) tell(e *entry, due core.Instant, err error) {
	if e.refused != due {
		e.refused = due
		t.o.Listener.Refused(e.Entry, due, err)
	}
}

// worthAnotherTry reports a refusal that is not about the job itself and may be over soon.
func worthAnotherTry(err error) bool {
	for _, lasting := range []error{
		core.ErrNotUnique, core.ErrDuplicate, core.ErrInvalid, core.ErrNoBatch, core.ErrBatchState,
	} {
		if errors.Is(err, lasting) {
			return false
		}
	}
	return true
}

// newest is the last instant up to now that the entry is due at and that is not too old to be made up for; zero if there
// is none.
func (e *entry) newest(now core.Instant) core.Instant {
	due := e.next
	if oldest := now.Add(-Grace); due < oldest {
		due = e.after(oldest - 1)
	}
	if due > now {
		return 0
	}
	for due != 0 {
		later := e.after(due)
		if later == 0 || later > now {
			break
		}
		due = later
	}
	return due
}

// advance says that everything up to at is dealt with.
func (e *entry) advance(at core.Instant) { e.next = e.after(at) }

// after is the first instant after at.
func (e *entry) after(at core.Instant) core.Instant {
	return core.InstantOf(e.Schedule.Next(at.Time()))
}

// Names of notes. They reach the disk.
const (
	markPrefix = "cron/at/"
	keysMark   = "cron/entries" // the keys of all that have a note, one a line
)

func (e *entry) mark(at core.Instant) core.MetaEntry {
	return core.MetaEntry{Name: markPrefix + e.key, Value: strconv.AppendInt(nil, int64(at), 10)}
}

// keyOf names an entry over restarts.
func keyOf(e Entry) string {
	sum := sha256.Sum256([]byte(e.Spec + "\x00" + string(e.Unit)))
	return hex.EncodeToString(sum[:12])
}

// start finds where an entry stood; the note is that of one that has never been seen.
func (t *Table) start(e *entry) []core.MetaEntry {
	now := t.o.Broker.Now()
	stored, err := strconv.ParseInt(string(t.ask(&core.ReadMeta{Name: markPrefix + e.key}).Data), 10, 64)
	at := core.Instant(stored)
	if err != nil || at > now.Add(believable) {
		e.advance(now)
		return []core.MetaEntry{e.mark(now)}
	}
	e.advance(at)
	return nil
}

// forget removes the notes of entries that are no more, and notes which there are.
func (t *Table) forget(loaded []*entry, keys string) []core.MetaEntry {
	known := make(map[string]bool, len(loaded))
	for _, e := range loaded {
		known[e.key] = true
	}
	before := string(t.ask(&core.ReadMeta{Name: keysMark}).Data)
	if before == keys {
		return nil
	}
	var marks []core.MetaEntry
	for key := range strings.Lines(before) {
		if key = strings.TrimSpace(key); key != "" && !known[key] {
			marks = append(marks, core.MetaEntry{Name: markPrefix + key})
		}
	}
	if keys == "" {
		return append(marks, core.MetaEntry{Name: keysMark})
	}
	return append(marks, core.MetaEntry{Name: keysMark, Value: []byte(keys)})
}

func (t *Table) store(marks []core.MetaEntry) {
	if len(marks) > 0 {
		t.ask(&core.WriteMeta{Entries: marks})
	}
}

// ask has one operation decided. A failed store is the engine's to report: a run that is not stored was not submitted.
func (t *Table) ask(op core.Op) core.Reply {
	replies := t.o.Broker.Do(t.client, []core.Op{op}, nil)
	if len(replies) == 0 {
		return core.Reply{Kind: core.Failed, Err: core.ErrStopped}
	}
	return replies[0]
}
