package machine_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"broker/core"
	"broker/core/internal/machine"
	"broker/core/internal/record"
)

// memStore is a store in memory that follows the rules of record.CommitBatch and complains about a batch that breaks
// them.
type memStore struct {
	jobs     map[uint64]*record.Record
	failures map[uint64]*core.Failure
	outcomes map[uint64]*core.Outcome
	meta     map[string][]byte
	timeline map[uint64]map[uint16]core.TimelineEntry

	documents map[string][]byte

	ahead []machine.Ahead // read, for Refill at a later operation
	later int             // operations until then

	check func(*record.CommitBatch) error // of every batch; nil: the newest format must carry it
}

func newMemStore() *memStore {
	return &memStore{
		jobs: map[uint64]*record.Record{}, failures: map[uint64]*core.Failure{}, outcomes: map[uint64]*core.Outcome{},
		meta: map[string][]byte{}, timeline: map[uint64]map[uint16]core.TimelineEntry{}, documents: map[string][]byte{},
	}
}

// put applies a batch and returns a line for each of its records.
func (s *memStore) put(b *record.CommitBatch) (lines []string, err error) {
	check := s.check
	if check == nil {
		check = func(b *record.CommitBatch) error { return encodable(b, record.NewestFormat) }
	}
	if err := check(b); err != nil {
		return nil, err
	}
	seen := map[uint64]bool{}
	for i := range b.Changes {
		c := &b.Changes[i]
		if seen[c.Seq] {
			return nil, fmt.Errorf("job %d occurs twice in a batch", c.Seq)
		}
		seen[c.Seq] = true
		line, err := s.change(c)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	for _, d := range b.Documents {
		if d.Value == nil {
			delete(s.documents, d.Name)
		} else {
			s.documents[d.Name] = d.Value
		}
	}
	for name := range s.documents {
		seq := uint64(0)
		if _, err := fmt.Sscanf(name, core.LogsPrefix+"%016x/", &seq); err == nil && s.jobs[seq] == nil {
			return nil, fmt.Errorf("job %d is gone and its log stays: %s", seq, name)
		}
	}
	for _, m := range b.Meta {
		if m.Value == nil {
			delete(s.meta, m.Name)
			if !strings.HasPrefix(m.Name, "core/series") {
				lines = append(lines, "unmark "+m.Name)
			}
			continue
		}
		s.meta[m.Name] = slices.Clone(m.Value)
		if !strings.HasPrefix(m.Name, "core/seq") && !strings.HasPrefix(m.Name, "core/totals") &&
			!strings.HasPrefix(m.Name, "core/history") &&
			!strings.HasPrefix(m.Name, "core/series") {
			lines = append(lines, "mark "+m.Name)
		}
	}
	return lines, nil
}

// logOf are the documents of the log of a job.
func (s *memStore) logOf(seq uint64) (documents []core.MetaEntry) {
	for _, name := range slices.Sorted(maps.Keys(s.documents)) {
		if strings.HasPrefix(name, core.LogPrefix(seq)) {
			documents = append(documents, core.MetaEntry{Name: name, Value: s.documents[name]})
		}
	}
	return documents
}

func (s *memStore) change(c *record.Change) (string, error) {
	r := s.jobs[c.Seq]
	if c.Gone {
		if r == nil {
			return "", fmt.Errorf("job %d is removed and was never stored", c.Seq)
		}
		if r.Stored != c.Stored || r.BodyBytes != c.BodyBytes {
			return "", fmt.Errorf("job %d is removed with parts %b, has %b", c.Seq, c.Stored, r.Stored)
		}
		if int(c.TimelineSlots) < len(s.timeline[c.Seq]) {
			return "", fmt.Errorf("job %d is removed with %d entries of its timeline, has %d", c.Seq, c.TimelineSlots,
				len(s.timeline[c.Seq]))
		}
		delete(s.jobs, c.Seq)
		delete(s.timeline, c.Seq)
		delete(s.failures, c.Seq)
		delete(s.outcomes, c.Seq)
		return fmt.Sprintf("gone %d", c.Seq), nil
	}
	line := "again"
	switch {
	case c.Job != nil && r == nil:
		r = &record.Record{Job: c.Job, BodyBytes: len(c.Job.Body)}
		s.jobs[c.Seq], line = r, "new"
	case c.Job != nil:
		if c.Stored != r.Stored|record.Rewritten || c.BodyBytes != r.BodyBytes {
			return "", fmt.Errorf("job %d is rewritten with parts %b and %d bytes, has %b and %d", c.Seq, c.Stored,
				c.BodyBytes, r.Stored, r.BodyBytes)
		}
		if c.KeepBody && !bytes.Equal(c.Job.Body, r.Job.Body) {
			return "", fmt.Errorf("job %d is rewritten with another body, which is to be kept", c.Seq)
		}
		r.Job, r.BodyBytes, r.Stored, line = c.Job, len(c.Job.Body), c.Stored, "rewrite"
	}
	if r == nil {
		return "", fmt.Errorf("job %d changes and was never stored", c.Seq)
	}
	line = fmt.Sprintf("%s %d", line, c.Seq)
	if c.Status != nil {
		r.Status, r.Stored = c.Status, r.Stored|record.HasStatus
		line += " " + c.Status.State.String()
	}
	if c.Failure != nil {
		s.failures[c.Seq], r.Stored = c.Failure, r.Stored|record.HasFailure
		line += " +failure"
	}
	if c.Outcome != nil {
		s.outcomes[c.Seq], r.Stored = c.Outcome, r.Stored|record.HasOutcome
		line += " +outcome"
	}
	for _, t := range c.Timeline {
		if s.timeline[c.Seq] == nil {
			s.timeline[c.Seq] = map[uint16]core.TimelineEntry{}
		}
		s.timeline[c.Seq][t.Slot] = t.Entry
	}
	if n := len(c.Timeline); n > 0 {
		line += fmt.Sprintf(" +%d", n)
	}
	return line, nil
}

// load gives a machine all that is stored.
func (s *memStore) load(m *machine.Machine, now core.Instant) error {
	s.ahead = nil
	for _, name := range slices.Sorted(maps.Keys(s.meta)) {
		if err := m.RestoreMeta(name, s.meta[name]); err != nil {
			return err
		}
	}
	records := slices.SortedFunc(maps.Values(s.jobs),
		func(a, b *record.Record) int { return cmp.Compare(a.Job.Seq, b.Job.Seq) })
	for _, r := range records {
		m.Restore(now, r)
	}
	m.Restored()
	return nil
}

// apply applies an operation, and supplies the data that it needs.
func (s *memStore) apply(m *machine.Machine, now core.Instant, id core.ClientID, op core.Op) {
	if s.later--; s.later <= 0 && s.ahead != nil {
		m.Refill(s.ahead)
		s.ahead = nil
	}
	for m.Apply(now, id, []core.Op{op}) == 0 {
		wants := m.Wanted(id)
		for _, seq := range wants.Jobs {
			m.SupplyJob(id, seq, s.jobs[seq].Job)
		}
		for _, seq := range wants.Logs {
			m.SupplyLog(id, seq, s.logOf(seq), nil)
		}
		for _, times := range wants.Times {
			parsed, err := times.Parse()
			m.SupplyTimes(id, times, parsed, err)
		}
	}
}

// take returns the replies of a client, and what each of them needs from the store, by its index.
func (s *memStore) take(m *machine.Machine, id core.ClientID) ([]core.Reply, map[int]machine.Work) {
	needs := map[int]machine.Work{}
	for _, w := range m.Work(id) {
		needs[w.Reply] = w
	}
	replies := m.Take(id, nil)
	for k, w := range needs {
		if w.Needs == machine.LeasedJob && s.ahead == nil {
			s.readAhead(m, replies[k].Seq)
		}
	}
	return replies, needs
}

// readAhead reads the jobs near a leased one, which the machine gets a few operations later.
func (s *memStore) readAhead(m *machine.Machine, seq uint64) {
	s.ahead, s.later = m.Ahead(max(seq, machine.AheadJobs/2)-machine.AheadJobs/2), int(seq%5)
	for k := range s.ahead {
		j := *s.jobs[s.ahead[k].Seq].Job
		s.ahead[k].Job = &j
	}
}

// complete adds the data from the store to a reply, as the engine does. A reply without work is complete.
func (s *memStore) complete(r *core.Reply, w machine.Work, needed bool) error {
	switch {
	case needed:
		if err := s.add(r, w.Needs); err != nil {
			return err
		}
	case r.Kind == core.Assigned && r.Job == nil:
		return fmt.Errorf("job %d was handed out without a payload", r.Seq)
	case r.Kind == core.Assigned && r.Lease.Fails > r.Job.PriorFails && r.Lease.Failure == nil:
		return fmt.Errorf("job %d was handed out without its failure", r.Seq)
	}
	if r.Kind == core.Ended && r.Outcome == nil {
		return fmt.Errorf("job %d ended and nobody knows how", r.Seq)
	}
	return nil
}

func (s *memStore) add(r *core.Reply, needs machine.Needs) error {
	rec := s.jobs[r.Seq]
	switch needs {
	case machine.LeasedJob, machine.LeasedJobLater:
		if r.Job == nil {
			if rec == nil {
				return fmt.Errorf("job %d was handed out without a payload and is not stored", r.Seq)
			}
			r.Job = rec.Job
		}
		if r.Lease.Failure == nil {
			r.Lease.Failure = r.Job.FailureAfter(r.Lease.Fails)
		}
		if r.Lease.Fails > r.Job.PriorFails && r.Lease.Failure == nil {
			if r.Lease.Failure = s.failures[r.Seq]; r.Lease.Failure == nil {
				return fmt.Errorf("job %d has failed %d times and nobody knows how", r.Seq, r.Lease.Fails)
			}
		}
	case machine.InspectedJob, machine.InspectedBrief:
		return s.addInspected(r, rec)
	case machine.KeptOutcome:
		r.Outcome = s.outcomes[r.Seq]
	case machine.FailureOfDead:
		if r.Outcome.Failure = s.failures[r.Seq]; r.Outcome.Failure == nil {
			r.Outcome.Failure = rec.Job.Failure
		}
		r.Outcome.Result = r.Outcome.Failure.Data
	case machine.ListedJobs, machine.ListedHeads, machine.FoundJobs, machine.FoundByRecords, machine.StoredDocuments:
	}
	return nil
}

func (s *memStore) addInspected(r *core.Reply, rec *record.Record) error {
	if t := r.Info.Timeline; t != nil {
		for _, e := range s.timeline[r.Seq] {
			t.Entries = append(t.Entries, e)
		}
		t.Trim()
		if len(t.Entries) != min(t.Count, t.Length) {
			return fmt.Errorf("job %d has %d entries in its timeline, of %d: %+v", r.Seq, len(t.Entries), t.Count,
				t.Entries)
		}
	}
	if r.Info.Job == nil && rec != nil {
		r.Info.Job = rec.Job
		if r.Info.State != core.Done && r.Info.Failure == nil {
			r.Info.Failure = r.Info.Job.FailureAfter(r.Info.Fails)
		}
	}
	switch {
	case r.Info.State == core.Done && r.Info.Outcome == nil:
		if r.Info.Outcome = s.outcomes[r.Seq]; r.Info.Outcome != nil {
			r.Info.Failure = r.Info.Outcome.Failure
		}
	case r.Info.State != core.Done && r.Info.Failure == nil &&
		(r.Info.Job == nil || r.Info.Fails > r.Info.Job.PriorFails):
		r.Info.Failure = s.failures[r.Seq]
	}
	return nil
}
