// Package tabletest puts jobs into a table and through their states without a machine, for the tests of the packages
// that a machine asks.
package tabletest

import (
	"broker/core"
	"broker/core/internal/table"
)

// Table is a table whose jobs a test moves.
type Table struct{ *table.Table }

// noon is when a new table begins.
const noon core.Instant = 1_900_000_000_000_000_000

// New returns an empty table that records changes.
func New() *Table {
	t := &Table{table.New(table.Options{Persist: true, CacheBytes: 1 << 20})}
	t.Now = noon
	return t
}

// Queue finds or creates a queue; packages that embed table.Queue create their own.
func (t *Table) Queue(name string) uint32 {
	if n := t.QueueNumber(name); n != 0 {
		return n
	}
	return t.AddQueue(&table.Queue{Name: name})
}

// Add adds a job to an existing queue. Its state is still Gone.
func (t *Table) Add(j *core.Job) (h uint32, e *table.Entry) {
	j.Seq, j.CreatedAt = t.NextSeq, t.Now
	t.NextSeq++
	if j.Type == "" {
		j.Type = j.Queue
	}
	h = t.Table.Add(j, t.QueueNumber(j.Queue))
	t.SetPayload(h, j)
	return h, t.At(h)
}

// Move puts a job into a state and into its lists, except for those of ready jobs.
func (t *Table) Move(h uint32, to core.State) {
	e := t.At(h)
	t.Unlist(h, e)
	if e.State == core.Scheduled {
		t.QueueAt(e.Queue).Scheduled.Remove(h, t.Before)
	}
	t.SetState(e, to)
	switch to {
	case core.Scheduled:
		t.QueueAt(e.Queue).Scheduled.Push(h, t.Before)
	case core.Leased:
		e.LeasedAt = t.Now
	case core.Done, core.Dead:
		e.ReadyAt = t.Now
	case core.Gone, core.Blocked, core.Ready, core.Retrying:
	}
	t.Enlist(h, e)
}

// Remove removes a job.
func (t *Table) Remove(h uint32) {
	e := t.At(h)
	t.FreeUnique(h, e)
	t.DropIndexes(h, e)
	t.SetState(e, core.Gone)
	t.Release(h)
}

// Meta seals the open batch and returns the meta entries in it, by name.
func (t *Table) Meta() map[string][]byte { return byName(t.seal().Batch.Meta) }

// Documents is Meta for documents.
func (t *Table) Documents() map[string][]byte { return byName(t.seal().Batch.Documents) }

func (t *Table) seal() *table.Sealed {
	sealed := &table.Sealed{}
	t.Seal(sealed)
	return sealed
}

func byName(entries []core.MetaEntry) map[string][]byte {
	all := map[string][]byte{}
	for _, entry := range entries {
		all[entry.Name] = entry.Value
	}
	return all
}
