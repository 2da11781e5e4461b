package record_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/record/recordtest"
)

// mustHaveNoZero fails when a field of the sample is zero: it was added to core but not to the codec.
func mustHaveNoZero(t *testing.T, v reflect.Value) {
	t.Helper()
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("%s.%s is not set in the sample: is it encoded?", v.Type(), v.Type().Field(i).Name)
		}
	}
}

func TestEveryFieldIsKept(t *testing.T) {
	t.Parallel()
	mustHaveNoZero(t, reflect.ValueOf(*recordtest.FullJob()))
	mustHaveNoZero(t, reflect.ValueOf(*recordtest.FullStatus()))
	mustHaveNoZero(t, reflect.ValueOf(*recordtest.FullStatus().Progress))
	mustHaveNoZero(t, reflect.ValueOf(*recordtest.FullStatus().Tally))
	mustHaveNoZero(t, reflect.ValueOf(*recordtest.FullFailure()))
	mustHaveNoZero(t, reflect.ValueOf(*recordtest.FullOutcome()))
	mustHaveNoZero(t, reflect.ValueOf(*recordtest.FullTimelineEntry()))

	var st record.Status
	if err := record.DecodeStatus(encodedStatus(nil, 77, recordtest.FullStatus()), 77, &st); err != nil {
		t.Fatal(err)
	}
	wantSame(t, &st, recordtest.FullStatus())
	var o core.Outcome
	if _, err := record.DecodeOutcome(record.AppendOutcome(nil, recordtest.FullOutcome()), &o); err != nil {
		t.Fatal(err)
	}
	wantSame(t, &o, recordtest.FullOutcome())
	var e core.TimelineEntry
	if err := record.DecodeTimelineEntry(encodedEvent(recordtest.FullTimelineEntry()), &e); err != nil {
		t.Fatal(err)
	}
	wantSame(t, &e, recordtest.FullTimelineEntry())
}

// encodedJob is AppendJob without the format.
func encodedJob(dst []byte, j *core.Job, stored record.Parts) []byte {
	b, _ := record.AppendJob(dst, j, stored)
	return b
}

// encodedEvent is the encoding of an entry of a timeline.
func encodedEvent(e *core.TimelineEntry) []byte {
	b, _ := record.AppendTimelineEntry(nil, e)
	return b
}

// encodedStatus is AppendStatus without the format.
func encodedStatus(dst []byte, seq uint64, s *record.Status) []byte {
	b, _ := record.AppendStatus(dst, seq, s)
	return b
}

func wantSame(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}

func TestEncodedJobsDecodeUnchanged(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*core.Job){
		"every field":     func(*core.Job) {},
		"no field":        func(j *core.Job) { *j = core.Job{Seq: j.Seq} },
		"type as queue":   func(j *core.Job) { j.Type = j.Queue },
		"uuid":            func(j *core.Job) { j.ID = "6ba7b810-9dad-41d1-80b4-00c04fd430c4" },
		"upper-case uuid": func(j *core.Job) { j.ID = "6BA7B810-9DAD-41D1-80B4-00C04FD430C4" },
		"nearly a uuid":   func(j *core.Job) { j.ID = "6ba7b810-9dad-41d1-80b4_00c04fd430c4" },
		"not quite hex":   func(j *core.Job) { j.ID = "6ba7b810-9dad-41d1-80b4-00c04fd430cg" },
		"no body":         func(j *core.Job) { j.Body = nil },
		"largest inline":  func(j *core.Job) { j.Body = bytes.Repeat([]byte("x"), record.InlineBytes) },
		"extreme instants": func(j *core.Job) {
			j.CreatedAt, j.ReadyAt, j.ExpiresAt = math.MinInt64, math.MaxInt64, -1
		},
		"extreme durations": func(j *core.Job) {
			j.LeaseFor, j.DeadFor, j.RetainFor = math.MinInt64, math.MaxInt64, -1
		},
		"extreme numbers": func(j *core.Job) {
			j.Priority, j.MaxAttempts, j.MaxFails, j.Parent, j.Batch = core.MinPriority, math.MaxUint32, math.MaxUint32,
				math.MaxUint64, math.MaxUint64
		},
		"names that are no text": func(j *core.Job) { j.Queue, j.Type, j.UniqueKey = "\x00\xff", "\xfe", "\n" },
		"unknown enumerations":   func(j *core.Job) { j.Format, j.Origin, j.Unique = 200, 101, 202 },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := recordtest.FullJob()
			change(want)
			got := new(core.Job)
			b := encodedJob([]byte("before"), want, 0)[len("before"):]
			size, _, err := record.DecodeJob(b, want.Seq, got, nil, nil)
			if err != nil || size != 0 {
				t.Fatal(size, err)
			}
			wantSame(t, got, want)
		})
	}
}

func TestLargeBodyIsOnlyCounted(t *testing.T) {
	t.Parallel()
	j := recordtest.FullJob()
	j.Body = make([]byte, record.InlineBytes+1)
	b := encodedJob(nil, j, 0)
	if len(b) > 200 {
		t.Errorf("record of %d bytes holds the body", len(b))
	}
	got := new(core.Job)
	size, _, err := record.DecodeJob(b, j.Seq, got, nil, nil)
	if err != nil || size != len(j.Body) || got.Body != nil {
		t.Errorf("size %d, body of %d bytes, %v", size, len(got.Body), err)
	}
}

func TestPlainJobTakesFewBytes(t *testing.T) {
	t.Parallel()
	j := &core.Job{
		Queue: "resize", Type: "resize", Body: make([]byte, 100), Origin: core.Gearman,
		CreatedAt: 1_790_000_000_000_000,
	}
	if n := len(encodedJob(nil, j, 0)) - len(j.Queue) - len(j.Body); n > 12 {
		t.Errorf("%d bytes beside queue and body", n)
	}
	st := &record.Status{
		State: core.Leased, Attempts: 1, ReadyAt: j.CreatedAt, LeasedAt: j.CreatedAt + 90_000, Placed: true,
	}
	if n := len(encodedStatus(nil, 1, st)); n > 18 {
		t.Errorf("%d bytes of status", n)
	}
}

// The encoding must never change: these records were written by the first version.
func TestRecordsOfTheFirstVersionAreRead(t *testing.T) {
	t.Parallel()
	job, first := new(core.Job), recordtest.FullJob()
	first.Tags, first.Schedule, first.Timeline, first.Trace, first.SeqOrder = nil, "", 0, "", false
	first.Tallies, first.Own, first.OnBroken, first.Cost, first.Rare, first.Failure = 0, 0, 0, 0, nil, nil
	wantHex(t, "job", encodedJob(nil, first, 0), jobV1)
	if _, _, err := record.DecodeJob(mustHex(t, jobV1), 77, job, nil, nil); err != nil {
		t.Fatal(err)
	}
	wantSame(t, job, first)
	status := recordtest.FullStatus()
	status.EpochAhead, status.LostLeases, status.Rerun, status.Entries = 0, 0, false, 0
	status.KeptByQueue, status.Group = false, ""
	status.Unstored, status.Tally, status.Moved = nil, nil, nil
	status.StopAfter, status.LogChunks, status.LeaseUntil, status.Version = 0, 0, 0, ""
	wantHex(t, "status", encodedStatus(nil, 77, status), statusV1)
	outcome := recordtest.FullOutcome()
	outcome.Failure.Group = ""
	wantHex(t, "outcome", record.AppendOutcome(nil, outcome), outcomeV1)
}

const (
	jobV1 = "01d7ffffff1f0171038080afa2dbffad06066f776e20696401740180c0e285e3681a0101018080e0b8c59da037077b226122" +
		"3a317d1102feffeba4be83f4fd06f9ffaea2dbffad0604017502f5ffaea2dbffad06f3ffaea2dbffad060e46030b83010b08" +
		"090a626f6479"
	statusV1  = "01ffffff0f04038280afa2dbffad060480e0ba84bf0302010177021a8480afa2dbffad060287010f0c0102000468616c6610"
	outcomeV1 = "011e031201fe030145016d030161000162020203016472"
)

func wantHex(t *testing.T, what string, got []byte, want string) {
	t.Helper()
	if hex.EncodeToString(got) != strings.ReplaceAll(want, " ", "") {
		t.Errorf("%s is written as\n%x instead of\n%s", what, got, want)
	}
}

func mustHex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTruncatedRecordsAreRefused(t *testing.T) {
	t.Parallel()
	j := recordtest.FullJob()
	j.Body = nil // a truncated body is not detected: it ends the record
	whole := encodedJob(nil, j, 0)
	for n := range len(whole) {
		if _, _, err := record.DecodeJob(whole[:n], 77, new(core.Job), nil, nil); !errors.Is(err, record.ErrTruncated) {
			t.Errorf("job cut at %d of %d: %v", n, len(whole), err)
		}
	}
	if _, _, err := record.DecodeJob(append(whole, 0), 77, new(core.Job), nil,
		nil); !errors.Is(err, record.ErrTrailing) {
		t.Errorf("job with one byte more: %v", err)
	}
	whole = encodedStatus(nil, 77, recordtest.FullStatus())
	for n := range len(whole) {
		if err := record.DecodeStatus(whole[:n], 77, new(record.Status)); !errors.Is(err, record.ErrTruncated) {
			t.Errorf("status cut at %d of %d: %v", n, len(whole), err)
		}
	}
	whole = record.AppendFailure(nil, recordtest.FullFailure())
	for n := range len(whole) {
		if _, err := record.DecodeFailure(whole[:n], new(core.Failure)); !errors.Is(err, record.ErrTruncated) {
			t.Errorf("failure cut at %d of %d: %v", n, len(whole), err)
		}
	}
}

func TestRecordsOfANewerVersionAreRefused(t *testing.T) {
	t.Parallel()
	newer := map[string][]byte{
		"version": {record.Version + 1, 0, 0},
		"field":   {record.Version, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01},
	}
	for name, b := range newer {
		if _, _, err := record.DecodeJob(b, 1, new(core.Job), nil, nil); !errors.Is(err, record.ErrNewerFormat) {
			t.Errorf("job with a newer %s: %v", name, err)
		}
		if err := record.DecodeStatus(b, 1, new(record.Status)); !errors.Is(err, record.ErrNewerFormat) {
			t.Errorf("status with a newer %s: %v", name, err)
		}
		if _, err := record.DecodeOutcome(b, new(core.Outcome)); !errors.Is(err, record.ErrNewerFormat) {
			t.Errorf("outcome with a newer %s: %v", name, err)
		}
		if err := record.DecodeTimelineEntry(b, new(core.TimelineEntry)); !errors.Is(err, record.ErrNewerFormat) {
			t.Errorf("entry of a timeline with a newer %s: %v", name, err)
		}
		if _, err := record.DecodeFailure(b, new(core.Failure)); !errors.Is(err, record.ErrNewerFormat) {
			t.Errorf("failure with a newer %s: %v", name, err)
		}
	}
}

func TestExternalRecordHasNoFields(t *testing.T) {
	t.Parallel()
	var e core.Failure
	var o core.Outcome
	if external, err := record.DecodeFailure(record.External, &e); !external || err != nil {
		t.Error(external, err)
	}
	if external, err := record.DecodeOutcome(record.External, &o); !external || err != nil {
		t.Error(external, err)
	}
	if _, err := record.DecodeFailure([]byte{record.Version, 1 | 2, 1, 'x'}, &e); !errors.Is(err, record.ErrFields) {
		t.Error(err)
	}
	inner := append([]byte{record.Version, 8, 2}, record.External...)
	if _, err := record.DecodeOutcome(inner, &o); !errors.Is(err, record.ErrFields) {
		t.Error(err)
	}
}

func TestEncodingDoesNotAllocate(t *testing.T) {
	job, st, e := recordtest.FullJob(), recordtest.FullStatus(), recordtest.FullFailure()
	job.Failure = nil // few jobs are submitted with one
	buf := make([]byte, 0, 4096)
	got := testing.AllocsPerRun(100, func() {
		buf = record.AppendFailure(encodedStatus(encodedJob(buf[:0], job, 0), 77, st), e)
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func TestDecodingInAScanDoesNotAllocate(t *testing.T) {
	j := recordtest.FullJob()
	j.ID, j.After, j.Tags = "6ba7b810-9dad-41d1-80b4-00c04fd430c4", nil, nil // lists take memory
	j.Failure, j.Rare = nil, nil                                             // few jobs have them
	b, known, room := encodedJob(nil, j, 0), record.NewInterner(), new([36]byte)
	status, job := encodedStatus(nil, 77, recordtest.FullStatus()), new(core.Job)
	st := &record.Status{Waiting: make([]uint64, 8), Unstored: make([]uint64, 8)}
	got := testing.AllocsPerRun(100, func() {
		if _, _, err := record.DecodeJob(b, 77, job, known, room); err != nil {
			t.Error(err)
		}
		if err := record.DecodeStatus(status, 77, st); err != nil {
			t.Error(err)
		}
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// FuzzDecode: no input makes a decoder panic, and accepted input is encoded and decoded to the same value.
func FuzzDecode(f *testing.F) {
	f.Add(encodedJob(nil, recordtest.FullJob(), 0))
	f.Add(encodedJob(nil, recordtest.FullJob(), record.Rewritten))
	f.Add(encodedStatus(nil, 77, recordtest.FullStatus()))
	f.Add(record.AppendFailure(nil, recordtest.FullFailure()))
	f.Add(record.AppendOutcome(nil, recordtest.FullOutcome()))
	f.Add(encodedEvent(recordtest.FullTimelineEntry()))
	f.Add(record.External)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		job, job2 := new(core.Job), new(core.Job)
		size, stored, err := record.DecodeJob(b, 77, job, nil, nil)
		if err == nil && size == 0 && len(job.Body) <= record.InlineBytes {
			_, again, err := record.DecodeJob(encodedJob(nil, job, stored), 77, job2, nil, nil)
			if err != nil || again&record.Rewritten != stored&record.Rewritten {
				t.Errorf("job %+v: stored %b, again %b, %v", job, stored, again, err)
			}
			emptyIsNil(job)
			wantSame(t, job2, job)
		}
		st, st2 := new(record.Status), new(record.Status)
		if err := record.DecodeStatus(b, 77, st); err == nil {
			if err := record.DecodeStatus(encodedStatus(nil, 77, st), 77, st2); err != nil {
				t.Errorf("status %+v: %v", st, err)
			}
			st.Waiting, st2.Waiting = notNil(st.Waiting), notNil(st2.Waiting)
			st.Unstored, st2.Unstored = notNil(st.Unstored), notNil(st2.Unstored)
			wantSame(t, st2, st)
		}
		e, e2 := new(core.TimelineEntry), new(core.TimelineEntry)
		if err := record.DecodeTimelineEntry(b, e); err == nil {
			if err := record.DecodeTimelineEntry(encodedEvent(e), e2); err != nil {
				t.Errorf("entry %+v: %v", e, err)
			}
			wantSame(t, e2, e)
		}
		o, o2 := new(core.Outcome), new(core.Outcome)
		if external, err := record.DecodeOutcome(b, o); err == nil && !external {
			if _, err := record.DecodeOutcome(record.AppendOutcome(nil, o), o2); err != nil {
				t.Errorf("outcome %+v: %v", o, err)
			}
			if !bytes.Equal(o.Result, o2.Result) || o.Success != o2.Success ||
				(o.Failure == nil) != (o2.Failure == nil) {
				t.Errorf("\n got %+v\nwant %+v", o2, o)
			}
		}
	})
}

// emptyIsNil sets empty fields of j to nil, as decoding does.
func emptyIsNil(j *core.Job) {
	if j.Type == "" {
		j.Type = j.Queue
	}
	if len(j.Body) == 0 {
		j.Body = nil
	}
	if len(j.Attributes) == 0 {
		j.Attributes = nil
	}
	if len(j.After) == 0 {
		j.After = nil
	}
}

func notNil(s []uint64) []uint64 {
	if s == nil {
		return []uint64{}
	}
	return s
}

// FuzzJob: every job is read back as it was written.
func FuzzJob(f *testing.F) {
	f.Add("id", "q", "t", []byte("b"), []byte("a"), "u", int64(1), int64(2), int64(-3), uint64(4), uint32(5), int32(-6),
		byte(7))
	f.Fuzz(func(t *testing.T, id, q, typ string, body, attrs []byte, u string, at, span, rel int64, seq uint64,
		n uint32,
		prio int32, enum byte,
	) {
		if len(body) > record.InlineBytes {
			body = body[:record.InlineBytes]
		}
		want := &core.Job{
			Seq: seq, ID: id, Queue: q, Type: typ, Body: body, Attributes: attrs, UniqueKey: u,
			CreatedAt: core.Instant(at),
			ReadyAt:   core.Instant(rel), ExpiresAt: core.Instant(span), StartBefore: core.Instant(at ^ rel),
			LeaseFor: time.Duration(span), DeadFor: time.Duration(rel), MaxFails: n, MaxAttempts: ^n,
			Priority: int64(prio) * 2,
			Format:   core.Format(enum), Origin: core.Protocol(enum >> 2), Backoff: core.Backoff(enum >> 1),
			Parent: uint64(rel),
			After:  []uint64{seq, uint64(at)}, Batch: uint64(span), UniqueStart: enum&1 != 0,
			RetainUntil: core.Instant(^at), RetainFor: time.Duration(at),
		}
		got := new(core.Job)
		if _, _, err := record.DecodeJob(encodedJob(nil, want, 0), seq, got, nil, nil); err != nil {
			t.Fatal(err)
		}
		emptyIsNil(want)
		wantSame(t, got, want)
	})
}
