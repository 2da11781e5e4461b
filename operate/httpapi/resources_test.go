package httpapi

import (
	"context"
	"fmt"
	"testing"
	"time"

	"broker/core"
	"broker/core/engine"
	"broker/operate/service"
)

func TestBatchesAreShownWithTheirChildBatches(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	batch := func(parent uint64, callback *core.Job) uint64 {
		r := core.DoOnce(f.engine, core.Faktory,
			&core.OpenBatch{Parent: parent, Description: "nightly", Success: callback})
		return r[0].Seq
	}
	root := batch(0, &core.Job{Queue: "after"})
	child := batch(root, nil)
	batch(child, nil)
	other := batch(0, nil)
	for range 3 {
		f.submit(&core.Job{Queue: "q", Batch: root})
	}
	f.apply(&core.CloseBatch{Batch: root})
	token, _ := f.leaseOne()
	f.call("POST", "/api/v1/leases/"+token+"/complete", nil).want(204)

	page := f.call("GET", "/api/v1/batches?limit=3", nil).want(200)
	rest := f.call("GET", "/api/v1/batches?limit=3&cursor="+page["cursor"].(string), nil).want(200)
	if n := len(page["batches"].([]any)); n != 3 || rest["cursor"] != nil || len(rest["batches"].([]any)) != 1 {
		t.Errorf("%d batches, then %v", n, rest)
	}
	if newest := page["batches"].([]any)[0].(map[string]any); newest["number"] != float64(other) ||
		newest["state"] != "open" {
		t.Errorf("the newest is %v", newest)
	}
	b := f.call("GET", fmt.Sprint("/api/v1/batches/", root), nil).want(200)
	if b["total"] != 3.0 || b["done"] != 1.0 || b["state"] != "running" || b["description"] != "nightly" ||
		b["children"] != 1.0 {
		t.Errorf("batch %v", b)
	}
	if s := b["success"].(map[string]any); s["state"] != "pending" || s["job"] == "" {
		t.Errorf("callback %v", s)
	}
	below := b["batches"].([]any)[0].(map[string]any)
	if below["number"] != float64(child) || len(below["batches"].([]any)) != 1 {
		t.Errorf("below it: %v", below)
	}
	f.call("GET", "/api/v1/batches/999999", nil).problem(404, "batch_not_found")
	f.call("GET", "/api/v1/batches/nonsense", nil).problem(404, "batch_not_found")
	f.call("GET", "/api/v1/batches?cursor=nonsense", nil).problem(422, "invalid_request")
}

func TestSeriesAndHistogramsCountJobs(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for range 4 {
		f.push(map[string]any{"queue": "q"})
	}
	f.advance(time.Second)
	token, _ := f.leaseOne()
	f.advance(time.Second)
	f.call("POST", "/api/v1/leases/"+token+"/complete", nil).want(204)
	f.advance(time.Minute)
	h := f.call("GET", "/api/v1/histograms?queue=q", nil).want(200)
	if wait, run := h["wait"].(map[string]any), h["run"].(map[string]any); wait["count"] != 1.0 ||
		run["count"] != 1.0 || len(run["buckets"].([]any)) != 1 {
		t.Errorf("histograms %v", h)
	}
	for _, queue := range []string{"", "q"} {
		s := f.call("GET", "/api/v1/series?step=2s&queue="+queue, nil).want(200)
		var submitted, done float64
		for _, p := range s["points"].([]any) {
			submitted += p.(map[string]any)["submitted"].(float64)
			done += p.(map[string]any)["done"].(float64)
		}
		if submitted != 4 || done != 1 || s["step_s"] != 2.0 {
			t.Errorf("queue %q: %v submitted, %v done", queue, submitted, done)
		}
	}
	if s := f.call("GET", "/api/v1/series?queue=unknown", nil).want(200); len(s["points"].([]any)) != 0 {
		t.Errorf("a queue that does not exist has %v", s)
	}
	f.call("GET", "/api/v1/series?step=3s", nil).problem(422, "invalid_request")
	f.call("GET", "/api/v1/histograms?queue=q&type=t", nil).problem(422, "invalid_request")
}

func TestStorageIsShownAndChecked(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.push(map[string]any{"queue": "q"})
	s := f.call("GET", "/api/v1/storage", nil).want(200)
	if len(s["levels"].([]any)) != 7 || s["disk_bytes"] == 0.0 || s["commits"].(map[string]any)["count"] == 0.0 {
		t.Errorf("storage %v", s)
	}
	op := f.call("POST", "/api/v1/storage/check?wait=1m", nil).want(202)
	if op["state"] != "done" || op["progress"] != 1.0 || op["action"] != "storage.check" {
		t.Errorf("check %v", op)
	}
	if s := f.call("GET", "/api/v1/storage", nil).want(200); s["check"].(map[string]any)["id"] != op["id"] {
		t.Errorf("the last check is %v", s["check"])
	}
}

// toyStore is the store of a test's engine, of which no backup is made.
type toyStore struct{ *engine.Engine }

var errNoBackup = &service.Error{Code: service.CodeUnsupported, Detail: "the store of a test has no backup"}

func (s toyStore) Backup(string) error                       { return errNoBackup }
func (s toyStore) BackupProgress(string) float64             { return 0 }
func (s toyStore) SendBackup() (service.BackupStream, error) { return nil, errNoBackup }

func (s toyStore) CheckStore(ctx context.Context, progress func(float64)) (*service.CheckReport, error) {
	r, err := s.Engine.CheckStore(ctx, progress)
	if err != nil {
		return nil, err
	}
	return &service.CheckReport{Damage: r.Damage, Orphans: r.Orphans, More: r.More}, nil
}
