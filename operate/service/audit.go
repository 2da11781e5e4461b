package service

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"broker/access"
	"broker/core"
)

// AuditEntry describes a change and who made it.
type AuditEntry struct {
	Number  uint64    `json:"number" doc:"counts up, never reused"`
	At      time.Time `json:"at"`
	Who     string    `json:"who" doc:"name of the principal"`
	Address string    `json:"address,omitempty" doc:"of the connection"`
	Via     string    `json:"via,omitempty" doc:"http, console, or the protocol of the client"`
	Action  string    `json:"action" example:"queue.pause"`
	Target  string    `json:"target,omitempty" doc:"name of the queue, job, …"`
	Detail  string    `json:"detail,omitempty"`
	Jobs    int       `json:"jobs,omitempty" doc:"number of affected jobs"`
	TraceID string    `json:"trace_id,omitempty" doc:"of the trace that the job is part of"`

	Before    string     `json:"before,omitempty" doc:"a setting before the change"`
	After     string     `json:"after,omitempty" doc:"and after it"`
	UndoUntil *time.Time `json:"undo_until,omitempty" doc:"until then, POST /audit/{number}/undo undoes the change"`
	Undone    bool       `json:"undone,omitempty" doc:"the change was undone"`

	inverse *inverse // undoes the change; nil: it cannot be undone
	now     string   // the setting after the change, not cut
}

// storedEntry is an AuditEntry in the store.
type storedEntry struct {
	AuditEntry
	Inverse *inverse `json:"inverse,omitempty"`
	Now     string   `json:"now,omitempty"`
}

func (e *AuditEntry) stored() storedEntry { return storedEntry{*e, e.inverse, e.now} }

// The log is a ring of meta entries.
const (
	auditSize = 1000
	auditMeta = "http/audit/"
	maxDetail = 512
)

// auditLog is the log in memory, oldest first.
type auditLog struct {
	mu      sync.Mutex // guards entries
	entries []AuditEntry
}

// loadAudit reads the stored log.
func (s *Service) loadAudit() error {
	for _, value := range s.readRing(auditSize, auditName) {
		var e storedEntry
		if err := json.Unmarshal(value, &e); err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		e.inverse, e.now = e.Inverse, e.Now
		s.audit.entries = append(s.audit.entries, e.AuditEntry)
	}
	slices.SortFunc(s.audit.entries, func(a, b AuditEntry) int { return cmp.Compare(a.Number, b.Number) })
	return nil
}

func auditName(number uint64) string { return fmt.Sprintf("%s%03d", auditMeta, number%auditSize) }

// audited applies a change and adds it to the audit log in the same commit.
func (s *Service) audited(ctx context.Context, c *session, e AuditEntry, op core.Op) error {
	commit, err := s.applied(c, e, op)
	return c.after(ctx, commit, err)
}

// applied is audited without the wait. It returns the commit.
func (s *Service) applied(c *session, e AuditEntry, op core.Op) (core.Commit, error) {
	r, err := s.changed(c, e, op)
	return r.Commit, err
}

// changed is applied with the reply, whose commit has the entry too.
func (s *Service) changed(c *session, e AuditEntry, op core.Op) (core.Reply, error) {
	before := presently(c, op)
	r, err := c.ask(op)
	if err != nil {
		return r, err
	}
	if before != nil {
		after := presently(c, op)
		e.Before, e.now = settingText(before), settingText(after)
		e.After = e.now
		if e.inverse = inverseOf(before); e.Before == e.now || after == nil || len(e.now) > maxInverse {
			e.inverse, e.now = nil, ""
		}
	}
	r.Commit = max(r.Commit, s.note(c, e))
	return r, nil
}

// note adds an entry to the audit log and returns its commit.
func (s *Service) note(c *session, e AuditEntry) core.Commit {
	e.At, e.Who, e.Address, e.Via = s.Now().Time(), c.caller.Name(), c.caller.Address, c.caller.Via
	for _, of := range []*string{&e.Target, &e.Detail, &e.Before, &e.After} {
		*of = cutText([]byte(text(*of)), maxDetail)
	}
	if e.inverse != nil {
		e.UndoUntil = new(e.At.Add(undoFor))
	}
	s.audit.mu.Lock()
	e.Number = 1
	if n := len(s.audit.entries); n > 0 {
		e.Number = s.audit.entries[n-1].Number + 1
	}
	s.audit.entries = append(s.audit.entries, e)
	if over := len(s.audit.entries) - auditSize; over > 0 {
		s.audit.entries = slices.Delete(s.audit.entries, 0, over)
	}
	s.audit.mu.Unlock()
	if s.o.Host != nil {
		s.o.Host.Audited(e)
	}
	if e.inverse != nil {
		c.caller.Made.Add(AuditID(e.Number))
	}
	return c.writeMeta(auditName(e.Number), e.stored())
}

// Note adds a change made by a client of a wire protocol. It does not wait for the disk.
func (s *Service) Note(change access.Change) {
	caller := Caller{
		Principal: access.Everyone, Address: change.Address, Via: change.Protocol.String(), name: change.Who,
	}
	c := s.open(caller)
	defer c.Close()
	s.note(c, AuditEntry{Action: change.Action, Target: change.Target, Detail: change.Detail})
}

// pausedBy returns who last paused a queue, and when, if the log still contains it.
func (s *Service) pausedBy(queue string) (who string, at *time.Time) {
	l := &s.audit
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.entries) - 1; i >= 0; i-- {
		switch e := &l.entries[i]; {
		case !e.concerns(queue):
		case e.Action == "queue.pause":
			when := e.At
			return e.Who, &when
		case e.Action == "queue.resume":
			return "", nil // the log does not contain the present pause
		}
	}
	return "", nil
}

// PausedQueues lists paused queues whose pause is in the log, the last paused first.
func (s *Service) PausedQueues(ctx context.Context, caller Caller, limit int) (paused []Queue, err error) {
	var names []string
	s.audit.mu.Lock()
	for i := len(s.audit.entries) - 1; i >= 0; i-- {
		if e := &s.audit.entries[i]; e.Action == "queue.pause" {
			names = append(names, e.Target)
			names = append(names, strings.Fields(e.Target)...)
		}
	}
	s.audit.mu.Unlock()
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] || len(seen) >= maxPausedSeen || len(paused) >= limit {
			continue
		}
		seen[name] = true
		q, err := s.Queue(ctx, caller, name)
		switch {
		case IsCode(err, CodeQueueNotFound) || IsCode(err, CodeForbidden):
		case err != nil:
			return nil, err
		case q.Paused:
			paused = append(paused, q)
		}
	}
	return paused, nil
}

// maxPausedSeen is the number of queues that PausedQueues looks at.
const maxPausedSeen = 100

// concerns reports whether a change of queues includes this queue. Clients of some protocols change several, or all,
// with one command.
func (e *AuditEntry) concerns(queue string) bool {
	name := text(queue)
	return e.Target == name || e.Target == "*" || slices.Contains(strings.Fields(e.Target), name)
}

// Marks lists the marks and the changes since a time that charts of a queue show, oldest first: pauses. Charts of all
// queues (queue is empty) also show changes of many jobs, workers that were told to stop, and changes of the leader.
func (s *Service) Marks(caller Caller, queue string, from time.Time) ([]AuditEntry, error) {
	if err := caller.mayRead(queue); err != nil {
		return nil, err
	}
	var found []AuditEntry
	if named, err := s.ListMarks(caller); err == nil {
		for _, m := range named {
			if !m.At.Before(from) {
				found = append(found, AuditEntry{At: m.At, Who: m.Who, Action: ActionMark, Target: m.Text})
			}
		}
	}
	s.audit.mu.Lock()
	defer s.audit.mu.Unlock()
	for i := range s.audit.entries {
		e := &s.audit.entries[i]
		marked := false
		switch kind, what, _ := strings.Cut(e.Action, "."); kind {
		case "queue":
			marked = (what == "pause" || what == "resume") && (queue == "" || e.concerns(queue))
		case "jobs":
			marked = queue == "" && e.Jobs > 0
		case "worker":
			marked = queue == ""
		case "cluster":
			marked = e.Action == "cluster."+string(ClusterTransfer)
		}
		if marked && !e.At.Before(from) {
			found = append(found, *e)
		}
	}
	slices.SortStableFunc(found, func(a, b AuditEntry) int { return a.At.Compare(b.At) })
	return found, nil
}

// ActionMark is the action of an entry of Marks that is a Mark.
const ActionMark = "mark"

// Audit lists entries, the newest first. If before is not zero, it starts below that number.
func (s *Service) Audit(caller Caller, before uint64, limit int) ([]AuditEntry, error) {
	if err := caller.mayAll(access.Admin); err != nil {
		return nil, err
	}
	s.audit.mu.Lock()
	defer s.audit.mu.Unlock()
	found := []AuditEntry{}
	for i := len(s.audit.entries) - 1; i >= 0 && len(found) < limit; i-- {
		if e := s.audit.entries[i]; before == 0 || e.Number < before {
			found = append(found, e)
		}
	}
	return found, nil
}

// ContentOf names the content that a meta entry of this package belongs to, if users would miss it; otherwise it is
// empty. Keys and tokens do not count, because they only serve jobs.
func ContentOf(name string) string {
	switch {
	case strings.HasPrefix(name, auditMeta):
		return "an audit log"
	case strings.HasPrefix(name, operationMeta):
		return "operations"
	case strings.HasPrefix(name, markMeta):
		return "marks"
	}
	return ""
}
