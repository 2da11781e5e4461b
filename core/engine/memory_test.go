//go:build !race

package engine_test

import (
	"bytes"
	"testing"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
)

// TestWaitingJobsCostAnIndexOnly fills a store and opens it again: the bodies go to disk and stay there. Not parallel:
// it measures memory, and the race detector needs a lot of it.
func TestWaitingJobsCostAnIndexOnly(t *testing.T) {
	const jobs, size, burst, most = 25_000, 4 << 10, 500, 400
	const memTables = 40 << 20 // what the store allocates for them, whatever is in them; less than half of all bodies
	dir := t.TempDir()
	begin := func() (*engine.Engine, core.ClientID) {
		e, err := engine.Open(engine.Options{Dir: dir, CacheBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		return e, e.Open(core.ClientOptions{Protocol: core.Gearman, Wake: func() {}})
	}
	end := func(e *engine.Engine) {
		if err := e.Shutdown(); err != nil {
			t.Fatal(err)
		}
	}
	e, c := begin()
	empty := coretest.LiveBytes()
	for range jobs / burst {
		var ops []core.Op
		for range burst {
			ops = append(ops,
				&core.Submit{Job: &core.Job{Queue: "q", Origin: core.Gearman, Body: bytes.Repeat([]byte{7}, size)}})
		}
		e.Do(c, ops, nil)
		e.Flush()
	}
	// an index, the cache and what is on its way to the disk
	if grown := coretest.LiveBytes() - empty; grown > jobs*size*3/4 {
		t.Errorf("%d bytes of bodies cost %d bytes of memory", jobs*size, grown)
	} else {
		t.Logf("%d bytes before they were all on disk", grown)
	}
	end(e)
	e, c = begin()
	defer end(e)
	live := coretest.LiveBytes() - empty
	if storeOnHeap {
		live -= memTables
	}
	perJob := live / jobs
	t.Logf("%d bytes a job", perJob)
	if perJob > most {
		t.Errorf("a job that waits costs %d bytes of memory, more than %d", perJob, most)
	}
	r := e.Do(c, []core.Op{&core.Lease{Queues: []string{"q"}}}, nil)
	if len(r) != 1 || r[0].Kind != core.Assigned || len(r[0].Job.Body) != size {
		t.Errorf("the first job was handed out as %+v", r)
	}
}
