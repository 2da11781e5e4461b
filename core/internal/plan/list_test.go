package plan

import (
	"errors"
	"testing"

	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/table/tabletest"
)

// twoJobs returns a table with two ready jobs of the queue q.
func twoJobs() (t *tabletest.Table, first, second core.Ref) {
	t = tabletest.New()
	t.Queue("q")
	var refs [2]core.Ref
	for i := range refs {
		h, e := t.Add(&core.Job{Queue: "q"})
		t.Move(h, core.Ready)
		refs[i] = core.Ref{Seq: e.Seq}
	}
	return t, refs[0], refs[1]
}

// check passes operations through the check of a list, and returns the first refusal.
func check(t *testing.T, r *List, ops ...core.Op) error {
	t.Helper()
	for _, op := range ops {
		if err := r.Next(op); err != nil {
			return err
		}
		r.Note(op)
	}
	return nil
}

func TestJobThatAnOperationEndsIsNotNamedAgain(t *testing.T) {
	t.Parallel()
	for name, op := range map[string]core.Op{
		"cancel": &core.Cancel{}, "complete": &core.Complete{}, "bury": &core.Bury{}, "move": &core.Move{Queue: "q"},
	} {
		jobs, first, second := twoJobs()
		set := func(op core.Op, ref core.Ref) core.Op {
			switch op := op.(type) {
			case *core.Cancel:
				op.Ref = ref
			case *core.Complete:
				op.Ref = ref
			case *core.Bury:
				op.Ref = ref
			case *core.Move:
				op.Ref = ref
			}
			return op
		}
		if err := check(t, New(jobs.Table, 1), set(op, first), &core.Update{Ref: second}); err != nil {
			t.Errorf("%s, then another job: %v", name, err)
		}
		if err := check(t, New(jobs.Table, 1), set(op, first),
			&core.Update{Ref: first}); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s, then the same job: %v", name, err)
		}
		if err := check(t, New(jobs.Table, 1), &core.Update{Ref: first}, set(op, first)); err != nil {
			t.Errorf("a change, then %s: %v", name, err)
		}
	}
}

func TestSubmissionsOfAListConflictWithEachOther(t *testing.T) {
	t.Parallel()
	submit := func(queue, id, key string) core.Op {
		j := &core.Job{Queue: queue, ID: id, UniqueKey: key}
		if key != "" {
			j.Unique = core.UniqueRefuse
		}
		return &core.Submit{Job: j}
	}
	for name, c := range map[string]struct {
		second core.Op
		want   error
	}{
		"another job":                  {submit("q", "b", "other"), nil},
		"the same id":                  {submit("r", "a", ""), core.ErrDuplicate},
		"the same key":                 {submit("q", "b", "key"), core.ErrNotUnique},
		"the same key, another queue":  {submit("r", "b", "key"), nil},
		"an operation without a check": {&core.Lease{}, core.ErrInvalid},
	} {
		r := New(tabletest.New().Table, 1)
		if err := check(t, r, submit("q", "a", "key"), c.second); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestListFindsTheJobsThatItsOperationsTake(t *testing.T) {
	t.Parallel()
	jobs, first, second := twoJobs()
	r := New(jobs.Table, 1)
	job := &core.Job{Queue: "q", UniqueKey: "key", Unique: core.UniqueRefuse, Body: make([]byte, 100)}
	if err := check(t, r, &core.Submit{Job: job},
		&core.Move{Ref: first, Queue: "q", After: []core.Ref{second}}); err != nil {
		t.Fatal(err)
	}
	key := table.DigestOf("key")
	if r.Joining("q") != 2 || r.Bytes() < 100 || !r.Locks("q", key) || r.Locks("r", key) || !r.Settles(first.Seq) ||
		r.Settles(second.Seq) {
		t.Errorf("joining %d, %d bytes, locks %v, settles %v", r.Joining("q"), r.Bytes(), r.Locks("q", key),
			r.Settles(first.Seq))
	}
	if w := r.WaitingFor(second.Seq); len(w) != 1 || w[0] != first.Seq {
		t.Errorf("jobs that wait for the second one: %v", w)
	}
	r.Apply()
	if r.Joining("q") != 0 || r.Bytes() != 0 || r.Locks("q", key) || !r.IsApplied() {
		t.Error("a list that is applied counts what it has taken twice")
	}
	var none *List
	if none.IsChecked() || none.IsApplied() || none.Settles(first.Seq) || none.Locks("q", table.Digest{}) ||
		none.Cancels(1) {
		t.Error("an operation outside of a list is limited by one")
	}
}

func TestCancelBySignalRemovesNoRunningJob(t *testing.T) {
	t.Parallel()
	jobs, first, second := twoJobs()
	jobs.Move(jobs.Handle(second.Seq), core.Leased)
	r := New(jobs.Table, 1)
	if err := check(t, r, &core.Cancel{Ref: first, Running: core.RunningSignal},
		&core.Cancel{Ref: second, Running: core.RunningSignal}); err != nil {
		t.Fatal(err)
	}
	if !r.Cancels(first.Seq) || r.Cancels(second.Seq) {
		t.Errorf("cancelled: %v, asked: %v", r.Cancels(first.Seq), r.Cancels(second.Seq))
	}
}
