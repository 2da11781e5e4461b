package service

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"broker/core/schema"
)

// shownState is what an undo restores of a job.
type shownState struct {
	State, Queue, Class, Died string
	Due                       string
	Priority                  int64
	Fails                     uint32
}

// mixedJobs makes a dead, a retrying, a scheduled, two ready and a running job of the queue q.
func mixedJobs(t *testing.T, s *Service) {
	t.Helper()
	once, twice := uint32(1), uint32(2)
	for _, sub := range []Submission{
		{ID: "dead", MaxFails: &once},
		{ID: "retrying", MaxFails: &twice},
		{ID: "running"},
		{ID: "scheduled", DelayS: 600},
		{ID: "ready-1", Priority: 3},
		{ID: "ready-2"},
	} {
		sub.Queue = "q"
		if _, err := s.Submit(t.Context(), everyone, []Submission{sub}, SubmitOptions{}); err != nil {
			t.Fatal(err)
		}
		if id := sub.ID; id == "scheduled" || strings.HasPrefix(id, "ready") {
			continue
		}
		lease, err := s.Lease(t.Context(), everyone, LeaseOptions{Queues: []string{"q"}, Worker: "w"})
		if err != nil || lease == nil {
			t.Fatal(lease, err)
		}
		if sub.ID != "running" {
			if err := s.Fail(t.Context(), everyone, lease.Token, FailOptions{Class: "TimeoutError"}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// states are the jobs by id.
func states(t *testing.T, s *Service) map[string]shownState {
	t.Helper()
	list, err := s.Jobs(t.Context(), everyone, JobFilter{}, JobPage{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]shownState{}
	for i := range list.Jobs {
		j := &list.Jobs[i]
		v := shownState{State: j.State, Queue: j.Queue, Priority: j.Priority, Fails: j.Fails}
		if j.Failure != nil {
			v.Class = j.Failure.Type
		}
		v.Died, v.Due = fmt.Sprint(timeText(j.DiedAt)), fmt.Sprint(timeText(j.RunAt))
		all[j.ID] = v
	}
	return all
}

func timeText(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.Format(time.RFC3339Nano)
}

// act changes jobs and waits for the end.
func act(t *testing.T, s *Service, a Action, sel Selection) Operation {
	t.Helper()
	op, err := s.StartAction(t.Context(), everyone, a, sel)
	if err == nil {
		op, err = s.WaitOperation(t.Context(), everyone, op.ID, time.Minute)
	}
	if err != nil {
		t.Fatal(err)
	}
	return op
}

func undo(t *testing.T, s *Service, id string) Operation {
	t.Helper()
	op, err := s.UndoOperation(t.Context(), everyone, id)
	if err == nil {
		op, err = s.WaitOperation(t.Context(), everyone, op.ID, time.Minute)
	}
	if err != nil {
		t.Fatal(err)
	}
	return op
}

// TestUndoRestoresJobs changes jobs of all states and undoes that.
func TestUndoRestoresJobs(t *testing.T) {
	t.Parallel()
	for _, a := range []Action{
		{Action: ActionRetry},
		{Action: ActionKill},
		{Action: ActionMove, Queue: "other"},
		{Action: ActionPriority, Priority: new(int64(7))},
	} {
		t.Run(string(a.Action), func(t *testing.T) {
			t.Parallel()
			s, _ := setup(t)
			mixedJobs(t, s)
			before := states(t, s)
			op := act(t, s, a, Selection{Filter: &JobFilter{}})
			changed := states(t, s)
			differ := 0
			for id := range before {
				if !reflect.DeepEqual(before[id], changed[id]) {
					differ++
				}
			}
			list, err := s.Jobs(t.Context(), everyone, JobFilter{Operation: op.ID}, JobPage{Limit: 100, Count: true})
			if err != nil || len(list.Jobs) != differ || differ == 0 || list.Count != differ || !list.CountExact {
				t.Errorf("%d jobs differ, and the operation has changed %d (%v)", differ, len(list.Jobs), err)
			}
			done := undo(t, s, op.ID)
			if done.Changed != differ || done.Skipped != 0 || done.Undoes != op.ID {
				t.Errorf("the undo of %d jobs: %+v", differ, done)
			}
			want := before
			if a.Action == ActionKill || a.Action == ActionMove { // the worker has lost its lease
				running := want["running"]
				running.State = "ready"
				want["running"] = running
			}
			retrying := want["retrying"] // it waits for the same time, but no longer as a retry
			if a.Action != ActionPriority {
				retrying.State = "scheduled"
				want["retrying"] = retrying
			}
			after := states(t, s)
			for id := range want {
				if !reflect.DeepEqual(after[id], want[id]) {
					t.Errorf("%s is %+v, was %+v, and was changed to %+v", id, after[id], want[id], changed[id])
				}
			}
			if _, err := s.UndoOperation(t.Context(), everyone, op.ID); !IsCode(err, CodeNoUndo) {
				t.Errorf("a second undo: %v", err)
			}
			listed, err := s.WaitOperation(t.Context(), everyone, op.ID, 0)
			if err != nil || listed.UndoneBy != done.ID {
				t.Errorf("%+v, %v", listed, err)
			}
		})
	}
}

// TestUndoLeavesChangedJobs undoes a retry after a worker has taken one of the jobs.
func TestUndoLeavesChangedJobs(t *testing.T) {
	t.Parallel()
	s, e := setup(t)
	submitMany(t, e, "q", 3)
	act(t, s, Action{Action: ActionKill}, Selection{Filter: &JobFilter{}})
	op := act(t, s, Action{Action: ActionRetry}, Selection{Filter: &JobFilter{}})
	if _, err := s.Lease(t.Context(), everyone, LeaseOptions{Queues: []string{"q"}, Worker: "w"}); err != nil {
		t.Fatal(err)
	}
	if done := undo(t, s, op.ID); done.Changed != 2 || done.Skipped != 1 {
		t.Errorf("the undo: %+v", done)
	}
	q, err := s.Queue(t.Context(), everyone, "q")
	if err != nil || q.Leased != 1 || q.Dead != 2 {
		t.Errorf("%+v, %v", q, err)
	}
}

// TestUndoIsBounded fills the memory for undo: the next operation cannot be undone, and its records are given back.
func TestUndoIsBounded(t *testing.T) {
	t.Parallel()
	s, e := setup(t)
	submitMany(t, e, "q", 600)
	kept := s.operations.kept
	if err := kept.Take(everyone.Holder(), maxAllChanged-550); err != nil {
		t.Fatal(err)
	}
	op := act(t, s, Action{Action: ActionKill}, Selection{Filter: &JobFilter{}})
	if op.Changed != 600 || op.UndoUntil != nil {
		t.Errorf("%+v", op)
	}
	if err := kept.Take(everyone.Holder(), 550); err != nil {
		t.Errorf("the records of the operation are still counted: %v", err)
	}
	kept.Return(everyone.Holder(), 550)
	op = act(t, s, Action{Action: ActionRetry}, Selection{Filter: &JobFilter{IDPrefix: "none"}})
	_, err := s.Jobs(t.Context(), everyone, JobFilter{Operation: op.ID}, JobPage{Limit: 1})
	if !IsCode(err, CodeInvalid) {
		t.Errorf("the jobs of an operation that has changed none: %v", err)
	}
	s.operations.mu.Lock()
	s.operations.forgetOld(s.Now().Time().Add(2 * undoFor))
	s.operations.mu.Unlock()
}

// TestUndoRestoresSettings changes each kind of setting and undoes it, after a restart of the service.
func TestUndoRestoresSettings(t *testing.T) {
	t.Parallel()
	s, e := setup(t)
	submitMany(t, e, "q", 1)
	s.share(t, "q", "tenant")
	limit := func(n uint32) error {
		_, err := s.PutLimit(t.Context(), everyone, LimitSpec{Queue: "q", Throttle: schema.Throttle{Concurrency: n}})
		return err
	}
	change := func(c QueueChange) error { _, err := s.ChangeQueue(t.Context(), everyone, "q", c); return err }
	schedule := func(cron string, create bool) error {
		_, err := s.PutSchedule(t.Context(), everyone,
			ScheduleChange{Name: "night", Cron: cron, Job: Submission{Queue: "q", Args: json.RawMessage(`["a"]`)}}, create)
		return err
	}
	for _, c := range []struct {
		before, after string
		change        func() error
	}{
		{"not paused", "paused", func() error { return change(QueueChange{Paused: new(true)}) }},
		{"queue: no limit", "queue: 3 at once", func() error { return limit(3) }},
		{"queue: 3 at once", "queue: 5 at once", func() error { return limit(5) }},
		{
			"queue: 5 at once", "queue: no limit",
			func() error { return s.RemoveLimit(t.Context(), everyone, "q", "queue", "") },
		},
		{"most jobs: high 0, normal 0, low 0", "most jobs: high 0, normal 9, low 0", func() error {
			return change(QueueChange{Max: &QueueMaxChange{Normal: new(uint32(9))}})
		}},
		{"tag tenant, fair", "tag shop, ordered", func() error {
			return s.ShareQueue(t.Context(), everyone, "q", Sharing{Mode: SharingOrdered, KeyTag: "shop"})
		}},
		{"no policy", "max-fails 4", func() error {
			return change(QueueChange{Policy: json.RawMessage(`{"max_fails":4}`)})
		}},
		{"no schedule", `"cron":"0 3 * * *"`, func() error { return schedule("0 3 * * *", true) }},
		{`"cron":"0 3 * * *"`, `"cron":"0 4 * * *"`, func() error { return schedule("0 4 * * *", false) }},
		{"not paused", "paused", func() error { return s.PauseSchedule(t.Context(), everyone, "night", true) }},
		{`"cron":"0 4 * * *"`, "no schedule", func() error { return s.RemoveSchedule(t.Context(), everyone, "night") }},
	} {
		if err := c.change(); err != nil {
			t.Fatal(c.after, err)
		}
		entry := lastEntry(t, s)
		if !strings.Contains(entry.Before, c.before) || !strings.Contains(entry.After, c.after) ||
			entry.UndoUntil == nil {
			t.Errorf("from %q to %q: the audit log has %+v", c.before, c.after, entry)
		}
		again, err := New(Options{Broker: e})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(again.Close)
		if err := again.UndoChange(t.Context(), everyone, entry.Number); err != nil {
			t.Errorf("to %q: %v", c.after, err)
		}
		undone := lastEntry(t, again)
		if undone.Before != entry.After || undone.After != entry.Before {
			t.Errorf("the undo of %+v is %+v", entry, undone)
		}
		if err := again.UndoChange(t.Context(), everyone, entry.Number); !IsCode(err, CodeNoUndo) {
			t.Errorf("a second undo: %v", err)
		}
		if err := again.UndoChange(t.Context(), everyone, undone.Number); err != nil { // the next case builds on it
			t.Errorf("the undo of an undo, back to %q: %v", c.after, err)
		}
		s = again
	}
}

// TestUndoOfASettingIsRefused: when it has changed since, when it is late, and for a caller without the right.
func TestUndoOfASettingIsRefused(t *testing.T) {
	t.Parallel()
	s, e := setup(t)
	submitMany(t, e, "q", 1)
	caller := everyone
	caller.Made = &Made{}
	pause := func(paused bool) uint64 {
		if _, err := s.ChangeQueue(t.Context(), caller, "q", QueueChange{Paused: &paused}); err != nil {
			t.Fatal(err)
		}
		return lastEntry(t, s).Number
	}
	first := pause(true)
	if want := []string{fmt.Sprint(AuditPrefix, first)}; !reflect.DeepEqual(caller.Made.IDs, want) {
		t.Errorf("made %v, want %v", caller.Made.IDs, want)
	}
	pause(false)
	if err := s.UndoChange(t.Context(), everyone, first); !IsCode(err, CodeNoUndo) {
		t.Errorf("changed since: %v", err)
	}
	last := pause(true)
	if err := s.UndoChange(t.Context(), tenant(t, "other", "operate:x.*"), last); !IsCode(err, CodeForbidden) {
		t.Errorf("without the right: %v", err)
	}
	if _, _, err := s.audit.undoable(last, s.Now().Time().Add(undoFor+time.Second)); !IsCode(err, CodeNoUndo) {
		t.Errorf("too late: %v", err)
	}
	if err := s.UndoChange(t.Context(), everyone, 999); !IsCode(err, CodeOperationNotFound) {
		t.Errorf("an unknown entry: %v", err)
	}
}

func lastEntry(t *testing.T, s *Service) AuditEntry {
	t.Helper()
	list, err := s.Audit(everyone, 0, 1)
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	return list[0]
}

// share lets the keys of a tag take turns.
func (s *Service) share(t *testing.T, queue, tag string) {
	t.Helper()
	if err := s.ShareQueue(t.Context(), everyone, queue, Sharing{Mode: SharingFair, KeyTag: tag}); err != nil {
		t.Fatal(err)
	}
}

// An older program reads what a newer one has stored: it undoes a change as a whole or not at all.
func TestUndoOfAChangeOfAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	for text, refused := range map[string]bool{
		`{"kind": "PauseQueue", "op": {"Queue": "q", "Paused": true}}`:                        false,
		`{"kind": "PauseQueue", "op": {"Queue": "q", "Paused": true, "Until": 5}}`:            true,
		`{"kind": "PutLimit", "op": {"Limit": {"Queue": "q", "Throttle": {"PerMinute": 5}}}}`: true,
		`{"kind": "PauseWorkers", "op": {}}`:                                                  true,
		`{"kind": "PauseQueue", "op": {"Queue": 7}}`:                                          true,
	} {
		i := &inverse{}
		if err := json.Unmarshal([]byte(text), i); err != nil {
			t.Fatal(err)
		}
		until := s.Now().Time().Add(undoFor)
		s.audit.entries = []AuditEntry{{Number: 1, UndoUntil: &until, inverse: i}}
		_, op, err := s.audit.undoable(1, s.Now().Time())
		if IsCode(err, CodeNoUndo) != refused || (op == nil) != refused {
			t.Errorf("%s: %v, %v", text, op, err)
		}
	}
}
