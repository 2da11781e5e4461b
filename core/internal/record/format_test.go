package record_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/record/recordtest"
)

// Each field alone is in an entry of every format, or the entry is refused: it is never left out.
func TestEveryFieldIsCarriedOrRefusedByEveryFormat(t *testing.T) {
	t.Parallel()
	refused := map[string]int{}
	for name, change := range fieldsAlone() {
		before := false
		for format := 1; format <= record.NewestFormat; format++ {
			want := &record.Entry{
				Position: record.Position{Format: format, Number: 1},
				Batch:    &record.CommitBatch{Changes: []record.Change{change}, Meta: []core.MetaEntry{}},
			}
			if format == 1 {
				want.Format = 0
			}
			b, err := record.AppendEntry(nil, want)
			if err != nil {
				if refused[name]++; !errors.Is(err, record.ErrOldFormat) || before {
					t.Errorf("%s in format %d: %v", name, format, err)
				}
				continue
			}
			before = true
			got, err := record.DecodeEntry(b)
			if err != nil {
				t.Fatal(name, err)
			}
			if wantSame(t, got, want); t.Failed() {
				t.Fatalf("%s in format %d", name, format)
			}
		}
		if !before {
			t.Errorf("no format carries %s", name)
		}
	}
	for _, name := range []string{
		"job.SeqOrder", "job.Tallies", "job.OnBroken", "job.Cost", "job.Failure", "job.Own",
		"job.wide priority",
		"status.Tally", "status.Moved", "status.StopAfter", "status.LogChunks",
	} {
		if refused[name] != 3 {
			t.Errorf("%s is refused by %d formats, want 3", name, refused[name])
		}
	}
	if refused["status.LeaseUntil"] != 4 || refused["job.Rare"] != 4 || refused["status.Version"] != 4 ||
		refused["timeline.Version"] != 4 || refused["job.Priority"] != 0 {
		t.Errorf("refused: %v", refused)
	}
}

// fieldsAlone are changes with one field set, of each type that a change has.
func fieldsAlone() map[string]record.Change {
	all := map[string]record.Change{}
	job := func() *core.Job { return &core.Job{Seq: 77, Queue: "q", Type: "q"} }
	full := reflect.ValueOf(recordtest.FullJob()).Elem()
	for i := range full.NumField() {
		j := job()
		reflect.ValueOf(j).Elem().Field(i).Set(full.Field(i))
		if j.Type == "q" && j.Queue != "q" {
			j.Type = j.Queue
		}
		all["job."+full.Type().Field(i).Name] = record.Change{Seq: 77, Job: j}
	}
	wide := job()
	wide.Priority = core.MinPriority
	all["job.wide priority"] = record.Change{Seq: 77, Job: wide}
	full = reflect.ValueOf(recordtest.FullStatus()).Elem()
	for i := range full.NumField() {
		s := new(record.Status)
		reflect.ValueOf(s).Elem().Field(i).Set(full.Field(i))
		all["status."+full.Type().Field(i).Name] = record.Change{Seq: 77, Status: s}
	}
	full = reflect.ValueOf(recordtest.FullFailure()).Elem()
	for i := range full.NumField() {
		f := new(core.Failure)
		reflect.ValueOf(f).Elem().Field(i).Set(full.Field(i))
		all["failure."+full.Type().Field(i).Name] = record.Change{Seq: 77, Failure: f}
	}
	full = reflect.ValueOf(recordtest.FullOutcome()).Elem()
	for i := range full.NumField() {
		o := new(core.Outcome)
		reflect.ValueOf(o).Elem().Field(i).Set(full.Field(i))
		all["outcome."+full.Type().Field(i).Name] = record.Change{Seq: 77, Outcome: o}
	}
	full = reflect.ValueOf(recordtest.FullTimelineEntry()).Elem()
	for i := range full.NumField() {
		var e core.TimelineEntry
		reflect.ValueOf(&e).Elem().Field(i).Set(full.Field(i))
		slots := []record.TimelineSlot{{Slot: 1, Entry: e}}
		all["timeline."+full.Type().Field(i).Name] = record.Change{Seq: 77, Timeline: slots}
	}
	return all
}

// Metadata entries and documents are carried or refused as fields are. Every format can remove them.
func TestMetadataIsCarriedOrRefusedByEveryFormat(t *testing.T) {
	t.Parallel()
	scheduled, _ := record.AppendJob(nil, &core.Job{Queue: "q", Cost: 3}, 0)
	plain, _ := record.AppendJob(nil, &core.Job{Queue: "q"}, 0)
	for _, c := range []struct {
		name, value string
		first       int
	}{
		{"http/key/x", "v", 1},
		{"core/seq", "v", 1},
		{"core/shape/q", `{"limits":[{"leased":1}]}`, 4},
		{"core/limit/all", `{"leased":1}`, 4},
		{"core/rate/shared/all", "v", 4},
		{"core/policy/queue/q", "{}", 4},
		{"core/window/0000000000000001", "{}", 4},
		{"core/queue/q", `{"paused":true}`, 1},
		{"core/queue/q", `{"spent":{"leases":2,"to":"other"}}`, 4},
		{"core/schedule/s", fmt.Sprintf(`{"job":%q}`, base64.StdEncoding.EncodeToString(plain)), 1},
		{"core/schedule/s", fmt.Sprintf(`{"job":%q}`, base64.StdEncoding.EncodeToString(scheduled)), 4},
		{"core/schedule_position/s", `{}`, 1},
		{"core/something", "of a later version", record.NewestFormat + 1},
	} {
		for format := 1; format <= record.NewestFormat; format++ {
			entry := &record.Entry{Position: record.Position{Format: format, Number: 1}, Batch: &record.CommitBatch{}}
			entry.Batch.Meta = []core.MetaEntry{{Name: c.name, Value: []byte(c.value)}}
			_, err := record.AppendEntry(nil, entry)
			if (err == nil) != (format >= c.first) || err != nil && !errors.Is(err, record.ErrOldFormat) {
				t.Errorf("%s = %s in format %d: %v", c.name, c.value, format, err)
			}
			entry.Batch.Meta[0].Value = nil
			if _, err := record.AppendEntry(nil, entry); err != nil {
				t.Errorf("%s is not removed in format %d: %v", c.name, format, err)
			}
		}
	}
	for format := 1; format <= record.NewestFormat; format++ {
		entry := &record.Entry{Position: record.Position{Format: format, Number: 1}, Batch: &record.CommitBatch{}}
		entry.Batch.Documents = []core.MetaEntry{{Name: core.LogChunkName(7, 0), Value: []byte("v")}}
		if _, err := record.AppendEntry(nil, entry); (err == nil) != (format >= 4) {
			t.Errorf("a chunk of a log in format %d: %v", format, err)
		}
	}
}

// The page for users lists every feature with its format.
func TestDocumentationListsTheFormatOfEveryFeature(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/versions.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range record.Features {
		if row := fmt.Sprintf("| %d | %s |", f.Format, f.Name); !strings.Contains(string(page), row) {
			t.Errorf("docs/versions.md lacks %q", row)
		}
	}
}
