package machine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/record/recordtest"
)

// inFull are operations with all fields of what they store, which a machine with a leased and a waiting job
// accepts, each with the fields that it cannot do without.
func inFull(first, second uint64) []struct{ needed, full core.Op } {
	one, ends := core.Ref{Seq: first}, core.ByAnyone
	few := core.Throttle{Leased: 2, LeasedPerWorker: 1, SlotFor: time.Minute, Rate: 3, Burst: 4}
	shared := core.Throttle{Leased: 2, Rate: 3, Burst: 4}
	job := func() *core.Job { return &core.Job{Queue: "q", Cost: 2} }
	backoff := core.BackoffRule{
		Kind: core.BackoffSpans, Base: 1, Max: 2, Spans: []time.Duration{3}, Jitter: 0.5,
	}
	return []struct{ needed, full core.Op }{
		{
			&core.PutLimit{Limit: core.Limit{
				Selector: core.InQueue("q", core.ScopeKey, ""), Throttle: core.Throttle{Leased: 1},
			}},
			&core.PutLimit{Limit: core.Limit{Selector: core.InQueue("q", core.ScopeKey, "k"), Throttle: few}},
		},
		{
			&core.PutLimit{Limit: core.Limit{
				Name: "s", Selector: core.Selector{Queues: []string{"q"}}, Throttle: core.Throttle{Leased: 1},
			}},
			&core.PutLimit{Limit: core.Limit{
				Name: "s", Selector: core.Selector{Queues: []string{"q"}, Types: []string{"t"}}, Throttle: shared,
			}},
		},
		{
			&core.ShareQueue{Sharing: core.Sharing{Queue: "q", Key: core.JobKey{Kind: core.KeyTag, Tag: "t"}, Fair: true}},
			&core.ShareQueue{Sharing: core.Sharing{
				Queue: "q", Key: core.JobKey{Kind: core.KeyTag, Tag: "u"}, Fair: true, Ordered: true,
				Weights: map[string]uint32{"a": 2},
			}},
		},
		{
			&core.ShareQueue{Sharing: core.Sharing{Queue: "q", Key: core.JobKey{Kind: core.KeyTag, Tag: "t"}}},
			&core.ShareQueue{Sharing: core.Sharing{Ordered: true}},
		},
		{
			&core.PutPolicy{Name: "q", Set: core.JobPolicy{Has: core.AllPolicyFields}},
			&core.PutPolicy{Scope: core.PolicyOfType, Name: "t", Set: core.JobPolicy{
				Has: core.AllPolicyFields, MaxAttempts: 1, MaxFails: 2, Backoff: backoff, Exhausted: core.ExhaustedBury,
				MoveTo: "r", LeaseFor: time.Second, ExpiresIn: time.Hour, RetainFor: time.Minute, Unstored: true,
			}},
		},
		{
			&core.PutSchedule{Schedule: core.Schedule{Name: "s", Every: time.Hour, Job: job()}},
			&core.PutSchedule{Create: true, Schedule: core.Schedule{
				Name: "s", Cron: "* * * * *", Zone: "UTC", Every: time.Hour, Offset: time.Minute,
				Job: recordtest.FullJob(), Backlog: 1, Missed: core.MissedAll, MaxMissed: 2,
				Paused: true, NextAt: 1 << 60,
			}},
		},
		{
			&core.PutSchedule{Schedule: core.Schedule{Name: "s", Cron: "* * * * *", Job: job()}},
			&core.PutSchedule{Schedule: core.Schedule{Zone: "Europe/Berlin", MaxMissed: 2, Missed: core.MissedAll}},
		},
		{
			&core.OpenBatch{},
			&core.OpenBatch{Description: "d", Owner: "o", Complete: job(), Success: job(), OpenUntil: 1 << 60},
		},
		{
			&core.MoveSpent{Queue: "q", Rule: core.SpentRule{Leases: 1, To: "r"}},
			&core.MoveSpent{Queue: "q", Rule: core.SpentRule{Leases: 2, To: "s", ExpiresIn: time.Hour, FromMove: true}},
		},
		{&core.PauseQueue{Queue: "q", Paused: true}, &core.PauseQueue{Queue: "q", Paused: true, For: time.Hour}},
		{&core.SetQueueMax{Queue: "q"}, &core.SetQueueMax{Queue: "q", Max: core.QueueMax{High: 1, Normal: 2, Low: 3}}},
		{
			&core.Update{Ref: core.Ref{Seq: second}},
			&core.Update{Ref: core.Ref{Seq: second}, Set: core.JobChange{
				Priority: new(int64(core.MaxPriority)), Type: new("t"), Tags: &[]string{"a"},
				Body:    &core.Body{Bytes: []byte("b")},
				ReadyAt: new(core.Instant(1 << 60)), ExpiresAt: new(core.Instant(1 << 61)), LeaseFor: new(time.Hour),
				MaxAttempts: new(uint32(3)), MaxFails: new(uint32(4)), Attempts: new(uint32(1)), Fails: new(uint32(1)),
				Backoff: new(core.BackoffFaktory), Exhausted: new(core.ExhaustedBury), Attributes: &[]byte{'{', '}'},
			}},
		},
		{&core.Cancel{Ref: one}, &core.Cancel{Ref: one, Running: core.RunningSignal}},
		{
			&core.Complete{Ref: one, Authority: ends},
			&core.Complete{Ref: one, Authority: ends, Result: []byte("r")},
		},
		{
			&core.Fail{Ref: one, Authority: ends},
			&core.Fail{Ref: one, Authority: ends, Failure: recordtest.FullFailure(), RetryAt: 1 << 60, Final: true},
		},
		{
			&core.Report{Ref: one, Authority: ends},
			&core.Report{
				Ref: one, Authority: ends, Progress: *recordtest.FullStatus().Progress, ExtendUntil: 1 << 60,
				LeaseUntil: 1 << 60, Heartbeat: true,
			},
		},
		{&core.AppendLog{Ref: one, Authority: ends}, &core.AppendLog{Ref: one, Authority: ends, Lines: []string{"l"}}},
		{&core.Bury{Ref: one}, &core.Bury{Ref: one, Group: "g", DiedAt: 5}},
		{
			&core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w"},
			&core.Lease{Queues: []string{"q"}, Holder: core.HeldByNobody, Worker: "w", Version: "v", LeaseFor: time.Hour},
		},
	}
}

// leaves calls fn for each field of what an operation stores that is set in full: the path to it. Conditions, and the
// names of jobs, are not stored.
func leaves(full reflect.Value, path []int, fn func(path []int, name string)) {
	for full.Kind() == reflect.Pointer {
		full = full.Elem()
	}
	for i := range full.NumField() {
		f, v := full.Type().Field(i), full.Field(i)
		at := append(append([]int{}, path...), i)
		inner := f.Type
		for inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case !f.IsExported() || v.IsZero() || slices.Contains([]string{"Tag", "Ref", "If", "Authority"}, f.Name):
		case inner.Kind() == reflect.Struct:
			leaves(v, at, func(p []int, name string) { fn(p, f.Name+"."+name) })
		default:
			fn(at, f.Name)
		}
	}
}

// setField sets the field at a path to the value that another operation has there.
func setField(to, from reflect.Value, path []int) {
	for _, i := range path {
		if to.Kind() == reflect.Pointer {
			if to.IsNil() {
				to.Set(reflect.New(to.Type().Elem()))
			}
			to, from = to.Elem(), from.Elem()
		}
		to, from = to.Field(i), from.Field(i)
	}
	to.Set(from)
}

// An operation with what it needs and any one field more is refused in each format that cannot carry it, with an error
// that names the formats, or the entries of that format carry it.
func TestEveryFieldOfAnOperationIsCarriedOrRefused(t *testing.T) {
	t.Parallel()
	done := map[string]bool{}
	for i, op := range inFull(1, 2) {
		sample := op.full
		kind := reflect.TypeOf(sample).Elem().Name()
		done[kind] = true
		paths, names := [][]int{nil}, []string{"the operation"}
		leaves(reflect.ValueOf(sample), nil, func(path []int, name string) {
			paths, names = append(paths, path), append(names, name)
		})
		accepted := 0
		for k, path := range paths {
			do := func(format int) (core.Reply, bool) {
				p, apply := inFormat(&format)
				p.store.check = func(b *record.CommitBatch) error { return encodable(b, format) }
				one := apply(&core.Submit{Job: &core.Job{Queue: "q"}}).Seq
				apply(&core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w"})
				at := inFull(one, apply(&core.Submit{Job: &core.Job{Queue: "q"}}).Seq)[i]
				if path != nil {
					setField(reflect.ValueOf(at.needed), reflect.ValueOf(at.full), path)
				}
				r := apply(at.needed)
				return r, commits(t, p)
			}
			if r, _ := do(record.NewestFormat); r.Kind == core.Failed {
				continue // for another reason
			}
			accepted++
			for format := 1; format < record.NewestFormat; format++ {
				r, carried := do(format)
				says := strings.Contains(fmt.Sprint(r.Err), fmt.Sprintf("now %d)", format))
				switch {
				case r.Kind == core.Failed && (!errors.Is(r.Err, core.ErrInvalid) || !says):
					t.Errorf("%s, %s, in format %d: %+v", kind, names[k], format, r)
				case r.Kind != core.Failed && !carried:
					t.Errorf("%s, %s, is accepted in format %d, which cannot carry it", kind, names[k], format)
				}
			}
		}
		if accepted == 0 {
			t.Errorf("%s is refused in the newest format", kind)
		}
	}
	for _, kind := range storing(t) {
		if reason := storesNothingElse[kind]; done[kind] == (reason != "") {
			t.Errorf("%s is tested: %v; not tested because: %q", kind, done[kind], reason)
		}
	}
}

// storesNothingElse says why an operation need not be in inFull.
var storesNothingElse = map[string]string{
	"Atomic": "it holds other operations", "Submit": "TestEveryFieldOfASubmissionIsCarriedOrRefused",
	"Move": "it has the changes of Update", "WriteMeta": "all formats have entries that are not the core's",
	"WriteDocuments": "all formats have documents that are not the core's", "KeepDone": "it is not stored",
	"Drain": "it is not stored", "SendData": "it is not stored",
	"RemoveLimit": "it removes", "RemoveSchedule": "it removes", "DropQueue": "it removes", "Purge": "it removes",
	"PurgeBatches": "it removes", "ResetCounters": "it removes",
	"Enqueue": "it only changes states", "Release": "it only changes states", "Rerun": "it only changes states",
	"LeaseJob": "its fields are those of Lease", "TransferLease": "its fields are those of Lease",
	"CreateQueue": "it stores a name", "CloseBatch": "it only changes states",
	"PauseSchedule": "it only changes states",
	"Resubmit":      "it submits a job with RerunOf",
	"RunSchedule":   "it submits the job of a schedule",
}

// storing are the operations that change what is stored, as package core declares them.
func storing(t *testing.T) (kinds []string) {
	t.Helper()
	files, err := filepath.Glob("../../*.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^type (\w+) struct \{\n\tchanging\n`)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range declared.FindAllSubmatch(text, -1) {
			kinds = append(kinds, string(match[1]))
		}
	}
	if len(kinds) < 30 {
		t.Fatalf("found %d operations: this looks in the wrong place", len(kinds))
	}
	return kinds
}

// TestFieldsOfStoredValuesHaveAFormat lists the fields of the values of metadata entries, which are JSON: a program
// that does not know one would lose it when it writes the value anew. A new field is a record.Feature, whose function
// in finds the field, or begins with a format in which the whole entry begins; then it is added here.
func TestFieldsOfStoredValuesHaveAFormat(t *testing.T) {
	t.Parallel()
	fields := map[string]map[string]bool{}
	for i := range inFull(1, 2) {
		for _, full := range []bool{false, true} {
			format := record.NewestFormat
			p, apply := inFormat(&format)
			one := apply(&core.Submit{Job: &core.Job{Queue: "q"}}).Seq
			at := inFull(one, one+1)[i]
			if full {
				leaves(reflect.ValueOf(at.full), nil, func(path []int, _ string) {
					f := inFull(one, one+1)[i]
					setField(reflect.ValueOf(f.needed), reflect.ValueOf(f.full), path)
					apply(f.needed)
					commits(t, p)
					fieldsOf(p.store.meta, fields)
				})
				apply(at.full)
			} else {
				apply(at.needed)
			}
			commits(t, p)
			fieldsOf(p.store.meta, fields)
		}
	}
	var have []string
	for prefix, names := range fields {
		have = append(have, prefix+" "+strings.Join(slices.Sorted(maps.Keys(names)), " "))
	}
	slices.Sort(have)
	want := []string{
		"core/group complete_job created_at description owner success_job total until",
		"core/limit burst leased queues rate types",
		"core/policy Backoff Backoff.Base Backoff.Jitter Backoff.Kind Backoff.Max Backoff.Spans Exhausted " +
			"ExpiresIn Has LeaseFor MaxAttempts MaxFails MoveTo RetainFor Unstored",
		"core/queue created limits limits.MaxHigh limits.MaxLow limits.MaxNormal paused paused_for " +
			"paused_until spent spent.expires_in spent.from_move spent.leases spent.to",
		"core/schedule backlog body cron every job missed offset paused zone",
		"core/schedule_position at count_from next revision",
		"core/shape fair key limits limits.burst limits.leased limits.name limits.per_worker limits.rate " +
			"limits.scope limits.slot_for ordered tag weights",
	}
	if !slices.Equal(have, want) {
		t.Errorf("stored are\n%s\nwant\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
}

// fieldsOf adds the fields of stored values, and those of the objects in them, by the first two parts of their names.
func fieldsOf(meta map[string][]byte, fields map[string]map[string]bool) {
	for name, value := range meta {
		var v map[string]any
		if json.Unmarshal(value, &v) != nil {
			continue
		}
		parts := strings.SplitN(name, "/", 3)
		prefix := strings.Join(parts[:min(len(parts), 2)], "/")
		if fields[prefix] == nil {
			fields[prefix] = map[string]bool{}
		}
		addFields(v, "", fields[prefix])
	}
}

func addFields(v any, path string, to map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			to[path+name] = true
			if path+name != "weights" { // by key
				addFields(inner, path+name+".", to)
			}
		}
	case []any:
		for _, inner := range v {
			addFields(inner, path, to)
		}
	}
}
