package table

import (
	"bytes"
	"encoding/json"
	"slices"

	"broker/core"
	"broker/core/internal/record"
)

// MarkRemoved adds the removal of a job to the open batch, if it has a record.
func (t *Table) MarkRemoved(h uint32, e *Entry) {
	if e.Has(Stored) {
		t.lastRemoval = t.Open
		t.removed = append(t.removed, t.gone(h, e))
		t.OpenBytes += ChangeBytes
	}
}

// ChangeBytes is the approximate size of a changed job in a batch, without its payload, failure and outcome.
const ChangeBytes = 256

// AddOpen counts bytes of the open batch.
func (t *Table) AddOpen(n int) {
	if t.opts.Persist {
		t.OpenBytes += n
	}
}

// Touch records that a job's record has changed.
func (t *Table) Touch(h uint32, e *Entry) {
	if e.Has(Dirty) || e.Unstored() || !t.opts.Persist {
		return
	}
	e.Set(Dirty)
	t.OpenBytes += ChangeBytes
	if e.Has(HasOptional) {
		t.OpenBytes += 2 * 10 * len(t.Optional(h).Waiting) // Waiting and Unstored
	}
	t.changed = append(t.changed, h)
}

// WriteMeta sets or removes meta entries that clients can read.
func (t *Table) WriteMeta(entries []core.MetaEntry) {
	for _, k := range entries {
		if k.Value == nil {
			delete(t.meta, k.Name)
		} else {
			k.Value = slices.Clone(k.Value) // the caller may use its own again
			t.meta[k.Name] = k.Value
		}
		t.LogMeta(k)
	}
}

// LogMeta adds an entry to the open batch.
func (t *Table) LogMeta(k core.MetaEntry) {
	if t.opts.Persist {
		t.lastMeta = t.Open
		for i := len(t.metaLog) - 1; i >= max(0, len(t.metaLog)-metaLookBack); i-- {
			if last := &t.metaLog[i]; last.Name == k.Name {
				t.OpenBytes += len(k.Value) - len(last.Value)
				last.Value = k.Value
				return
			}
		}
		t.metaLog = append(t.metaLog, k)
		t.OpenBytes += record.MetaSize(&k)
	}
}

// metaLookBack is among how many of the last entries one of the same name is replaced. Some are set for each request of
// another node.
const metaLookBack = 4

// Promise returns the commit that a reply to a change depends on.
func (t *Table) Promise() core.Commit {
	if !t.opts.Await {
		return 0
	}
	return t.Open
}

// Pending returns c, or zero once c is durable.
func (t *Table) Pending(c core.Commit) core.Commit {
	if c <= t.Durable || !t.opts.Await {
		return 0
	}
	return c
}

// JobCommit returns the commit that a reply about a job depends on.
func (t *Table) JobCommit(e *Entry) core.Commit {
	if e.Has(Dirty) {
		return t.Promise()
	}
	var commit core.Commit
	if e.Has(inflight) {
		commit = t.Pending(t.Open - 1)
	}
	// the end of a dependency may be only in the record of that dependency
	if e.State == core.Blocked && e.Has(HasOptional) {
		commit = max(commit, t.Pending(t.Optional(t.Handle(e.Seq)).Shortened))
	}
	return commit
}

// JobGone returns the commit that a reply depends on if it says that a job does not exist.
func (t *Table) JobGone() core.Commit { return t.Pending(t.lastRemoval) }

// MetaCommit returns the commit that a reply about meta entries or settings of queues depends on.
func (t *Table) MetaCommit() core.Commit { return t.Pending(t.lastMeta) }

// MetaChanged records that the open batch changes a meta entry.
func (t *Table) MetaChanged() { t.lastMeta = t.Open }

// UnsealedBytes is the approximate number of bytes that are not on disk yet.
func (t *Table) UnsealedBytes() int { return t.OpenBytes + t.inflightBytes }

// HasChanges reports whether the open batch has changes.
func (t *Table) HasChanges() bool {
	return len(t.changed) > 0 || len(t.removed) > 0 || len(t.metaLog) > 0 || len(t.documents) > 0
}

// Changes is how many changes of jobs and documents the open batch has.
func (t *Table) Changes() int { return len(t.changed) + len(t.removed) + len(t.documents) }

// Begin sets the number of the last commit.
func (t *Table) Begin(last core.Commit) { t.Open, t.Durable = last+1, last }

// MetaValue is the value of a meta entry; nil: there is none.
func (t *Table) MetaValue(name string) []byte { return t.meta[name] }

// RestoreEntry restores a meta entry.
func (t *Table) RestoreEntry(name string, value []byte) {
	t.meta[name] = bytes.Clone(value)
}

// AddMeta appends meta entries to the open batch. No reply depends on them.
func (t *Table) AddMeta(add func([]core.MetaEntry) []core.MetaEntry) { t.metaLog = add(t.metaLog) }

// ChangeCommit returns the commit that a reply to a change of a job depends on; zero if the job is not stored.
func (t *Table) ChangeCommit(e *Entry) core.Commit {
	if e.Unstored() {
		return 0
	}
	return t.Promise()
}

// Persists reports whether changes are recorded.
func (t *Table) Persists() bool { return t.opts.Persist }

// Encode encodes the value of a meta entry.
func Encode(v any) []byte {
	value, err := json.Marshal(v)
	if err != nil {
		panic("table: meta cannot be encoded: " + err.Error())
	}
	return value
}

// RewriteStatus adds the status of a job to the open batch.
func (t *Table) RewriteStatus(h uint32, e *Entry) {
	e.Set(Changed)
	t.Touch(h, e)
}
