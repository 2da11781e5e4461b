package console

import (
	"cmp"
	"html/template"
	"time"

	"broker/operate/service"
)

type batchesData struct {
	Batches []service.Batch
	Next    template.URL // empty on the last page
}

func batchesPage(r *request) (*view, error) {
	list, cursor, err := r.service.Batches(r.Context(), r.caller, pageRows, r.query.Get("cursor"))
	if err != nil {
		return nil, err
	}
	d := &batchesData{Batches: list, Next: r.nextPage("batches", cursor)}
	return &view{page: "batches", title: "Batches", nav: "batches", data: d}, nil
}

type batchData struct {
	Tree  *service.BatchTree
	Name  string
	Left  string // how long the batch still takes, at the pace so far; empty: nothing says
	Table jobTable
}

func batchPage(r *request) (*view, error) {
	tree, err := r.service.Batch(r.Context(), r.caller, r.named("id"))
	if err != nil {
		return nil, err
	}
	d := &batchData{Tree: tree, Name: batchLabel(tree.Batch), Left: timeLeft(&tree.Batch, r.console.options.Now())}
	jobs, err := r.service.Jobs(r.Context(), r.caller, service.JobFilter{Batch: tree.ID}, service.JobPage{Limit: 20})
	if err != nil {
		return nil, err
	}
	d.Table = jobTable{Jobs: jobs.Jobs, Columns: usualColumns, Empty: "No job of this batch is left: they are done."}
	return &view{page: "batch", title: d.Name, nav: "batches", data: d}, nil
}

// timeLeft estimates how long a batch still takes if its jobs end as fast as they have since it was created. It is
// empty if none has, if none is left, and if one has failed for good.
func timeLeft(b *service.Batch, now time.Time) string {
	if b.CreatedAt == nil || b.Done == 0 || b.Pending == 0 || b.Lost > 0 {
		return ""
	}
	each := now.Sub(*b.CreatedAt).Seconds() / float64(b.Done)
	return seconds(each * float64(b.Pending))
}

// batchLabel returns the displayed name of a batch.
func batchLabel(b service.Batch) string { return cmp.Or(b.Description, b.ID) }
