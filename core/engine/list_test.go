package engine_test

import (
	"bytes"
	"testing"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/core/internal/store/storetest"
)

func TestListsWithoutBodiesReadNoBodiesAndEndPagesEarly(t *testing.T) {
	t.Parallel()
	w := newRecorder(t, storetest.NewDisk(), coretest.NewClock(), func(o *engine.Options) { o.CacheBytes = 1 })
	defer w.shutdown()
	const jobs, attributeBytes = 20, 200 << 10
	for range jobs {
		w.one(w.client, &core.Submit{Job: &core.Job{
			Queue: "q", Origin: core.Faktory, Body: make([]byte, 10<<10),
			Attributes: bytes.Repeat([]byte{1}, attributeBytes),
		}})
	}
	w.flush()
	seen, pages := 0, 0
	for cursor := uint64(0); ; pages++ {
		r := w.one(w.client, &core.ListJobs{Cursor: cursor, Limit: 1000, NoBody: true})
		for _, i := range r.Jobs {
			if seen++; i.Seq != uint64(seen) || i.Job == nil || i.Job.Body != nil ||
				len(i.Job.Attributes) != attributeBytes {
				t.Fatalf("row %d is job %d: %d bytes of body, want none", seen, i.Seq, len(i.Job.Body))
			}
		}
		if cursor = r.Cursor; cursor == 0 {
			break
		}
	}
	if seen != jobs || pages < 2 {
		t.Errorf("%d jobs in %d pages, want %d jobs in several", seen, pages+1, jobs)
	}
}
