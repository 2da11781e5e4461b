package record

import "broker/core"

// MaxBatchBytes is the largest commit batch that the store accepts, by CommitBatch.Size: Pebble's limit is 4 GiB, for its
// own encoding. The machine counts the bytes it adds to the open batch and refuses work long before this limit.
const MaxBatchBytes = 4<<30 - 64<<20

// Upper bounds, in bytes, of the numbers of a record, its key and its header in the batch.
const (
	keyBytes    = 1 + 8 + 1 + 2*5 // a key; operation and lengths in the batch
	numberBytes = 10
	jobBytes    = 25*numberBytes + 2*keyBytes
	statusBytes = 20*numberBytes + keyBytes
	partBytes   = 8*numberBytes + 3*keyBytes
	goneBytes   = 6 * keyBytes
)

// JobSize returns an upper bound of the size of j in a commit batch, in bytes.
func JobSize(j *core.Job) int {
	n := jobBytes + len(j.Queue) + len(j.Type) + len(j.ID) + len(j.UniqueKey) + len(j.Attributes) + len(j.Body) +
		numberBytes*len(j.After) + len(j.Schedule) + len(j.Trace)
	for _, tag := range j.Tags {
		n += numberBytes + len(tag)
	}
	if j.Failure != nil {
		n += FailureSize(j.Failure)
	}
	return n
}

// Size returns an upper bound of the size of s in a commit batch, in bytes.
func (s *Status) Size() int {
	n := statusBytes + len(s.Worker) + len(s.Group) + numberBytes*(len(s.Waiting)+len(s.Unstored))
	if s.Progress != nil {
		n += len(s.Progress.Text) + len(s.Progress.Verbatim)
	}
	if s.Moved != nil {
		n += len(s.Moved.Queue) + len(s.Moved.From) + numberBytes
	}
	return n
}

// FailureSize returns an upper bound of the size of f in a commit batch, in bytes.
func FailureSize(f *core.Failure) int {
	n := partBytes + len(f.Type) + len(f.Message) + len(f.Group) + len(f.Data)
	for _, line := range f.Backtrace {
		n += numberBytes + len(line)
	}
	return n
}

// OutcomeSize returns an upper bound of the size of o in a commit batch, in bytes.
func OutcomeSize(o *core.Outcome) int {
	n := partBytes + len(o.Result)
	if o.Failure != nil {
		n += FailureSize(o.Failure)
	}
	return n
}

// entrySize returns an upper bound of the size of a timeline entry in a commit batch, in bytes.
func entrySize(e *core.TimelineEntry) int {
	return partBytes + len(e.Worker) + len(e.Address) + len(e.Queue) + len(e.Detail) + len(e.Group) + len(e.Text) + len(e.Fields)
}

// MetaSize returns an upper bound of the size of m in a commit batch, in bytes.
func MetaSize(m *core.MetaEntry) int { return keyBytes + len(m.Name) + len(m.Value) }

// Size returns an upper bound of the size of c in a commit batch, in bytes.
func (c *Change) Size() int {
	n := 0
	if c.Gone {
		n = goneBytes + 2*keyBytes*int(c.TimelineSlots)
	}
	if c.Job != nil {
		n += JobSize(c.Job)
	}
	if c.Status != nil {
		n += c.Status.Size()
	}
	if c.Failure != nil {
		n += FailureSize(c.Failure)
	}
	if c.Outcome != nil {
		n += OutcomeSize(c.Outcome)
	}
	for i := range c.Timeline {
		n += entrySize(&c.Timeline[i].Entry)
	}
	return n
}

// Size returns an upper bound of the size of b in the store's log, in bytes.
func (b *CommitBatch) Size() int {
	n := 0
	for i := range b.Changes {
		n += b.Changes[i].Size()
	}
	for i := range b.Meta {
		n += MetaSize(&b.Meta[i])
	}
	for i := range b.Documents {
		n += MetaSize(&b.Documents[i])
	}
	return n
}
