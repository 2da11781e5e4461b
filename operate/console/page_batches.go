package console

import (
	"cmp"
	"html/template"

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
	Table jobTable
}

func batchPage(r *request) (*view, error) {
	tree, err := r.service.Batch(r.Context(), r.caller, r.named("id"))
	if err != nil {
		return nil, err
	}
	d := &batchData{Tree: tree, Name: batchLabel(tree.Batch)}
	jobs, err := r.service.Jobs(r.Context(), r.caller, service.JobFilter{Batch: tree.ID}, service.JobPage{Limit: 20})
	if err != nil {
		return nil, err
	}
	d.Table = jobTable{Jobs: jobs.Jobs, Columns: usualColumns, Empty: "No job of this batch is left: they are done."}
	return &view{page: "batch", title: d.Name, nav: "batches", data: d}, nil
}

// batchLabel returns the displayed name of a batch.
func batchLabel(b service.Batch) string { return cmp.Or(b.Description, b.ID) }
