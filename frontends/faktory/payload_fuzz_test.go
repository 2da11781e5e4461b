package faktory

import (
	"bytes"
	"encoding/json"
	"testing"
)

// A fetched job equals the pushed one and can be pushed again.
func FuzzWorkUnit(f *testing.F) {
	f.Add([]byte(unit(`"custom":{"a":1,"track":1},"retry":3,"x":[1e999]`)))
	f.Add([]byte(unit(`"at":"2020-01-01T00:00:00Z","failure":{"retry_count":1},"Queue":"q"`)))
	f.Add([]byte(`{"jid":"12345678\u0000","jobtype":"\ud800","args":[ 1 , "a" ],"":0}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		front := &Frontend{}
		job, err := build(t, front, string(text))
		if err != nil {
			return
		}
		var ref referenceJob
		if err := json.Unmarshal(text, &ref); err == nil { // fails only for numbers that overflow a float
			if ref.Jid != job.ID || ref.Type != job.Type || ref.Queue != "" && ref.Queue != job.Queue ||
				ref.Args == nil {
				t.Errorf("%s\nwas read as %+v, the reference reads %+v", text, job, ref)
			}
		}
		out := front.appendJob(nil, job, jobState{})
		if !json.Valid(out) {
			t.Fatalf("%s\nbecame %s", text, out)
		}
		again := mustBuild(t, front, string(out))
		if !bytes.Equal(job.Body, again.Body) || job.ID != again.ID || job.Type != again.Type ||
			job.Queue != again.Queue ||
			job.MaxFails != again.MaxFails || job.LeaseFor != again.LeaseFor || job.Priority != again.Priority ||
			job.UniqueKey != again.UniqueKey || job.Batch != again.Batch || job.PriorFails != again.PriorFails {
			t.Errorf("%s\ncame back as %s", text, out)
		}
		if out2 := front.appendJob(nil, again, jobState{}); !bytes.Equal(out, out2) {
			t.Errorf("%s\nthen %s", out, out2)
		}
	})
}
