package console

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"broker/operate/service"
)

// finishedPageSize is the number of rows of a page of finished jobs.
const finishedPageSize = 100

// finishedKinds lists the ways in which jobs end.
var finishedKinds = []string{"done", "failed", "cancelled", "expired"}

type finishedData struct {
	Rows                []finishedRow
	Queue, Worker, Kind string
	Kinds               []choice
	Next, First         string // links; empty: none
	Searched            int    // number of the last jobs that were searched for the worker and the kind
}

// finishedRow is a finished job with its wait and run times.
type finishedRow struct {
	service.FinishedJob
	Waited, Ran string
}

// finishedPage lists the jobs that ended last, by queue, worker and result.
func finishedPage(r *request) (*view, error) {
	d := &finishedData{
		Queue: strings.TrimSpace(r.query.Get("queue")), Worker: strings.TrimSpace(r.query.Get("worker")),
		Kind: r.query.Get("kind"),
	}
	for _, kind := range append([]string{""}, finishedKinds...) {
		d.Kinds = append(d.Kinds, choice{
			Value: kind, Label: cmp.Or(kind, "ended in any way"), Chosen: kind == d.Kind,
		})
	}
	offset, err := strconv.Atoi(r.query.Get("offset"))
	if err != nil || offset < 0 {
		offset = 0
	}
	jobs, err := r.service.Finished(r.Context(), r.caller, d.Queue, 0, maxFinished)
	if err != nil {
		return nil, err
	}
	d.Searched = len(jobs)
	jobs = slices.DeleteFunc(jobs, func(j service.FinishedJob) bool {
		return d.Kind != "" && j.Kind != d.Kind || d.Worker != "" && j.Worker != d.Worker
	})
	shown := jobs[min(offset, len(jobs)):]
	if len(shown) > finishedPageSize {
		shown = shown[:finishedPageSize]
		d.Next = d.page(offset + finishedPageSize)
	}
	if offset > 0 {
		d.First = d.page(0)
	}
	for _, j := range shown {
		d.Rows = append(d.Rows, finishedRow{j, between(j.CreatedAt, j.LeasedAt), between(j.LeasedAt, j.FinishedAt)})
	}
	return &view{page: "finished", title: "Finished", nav: "finished", queue: d.Queue, data: d}, nil
}

// maxFinished is the number of finished jobs that the broker remembers.
const maxFinished = 1000

// page returns the link to another page of the list.
func (d *finishedData) page(offset int) string {
	q := url.Values{}
	for name, value := range map[string]string{"queue": d.Queue, "worker": d.Worker, "kind": d.Kind} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if offset > 0 {
		q.Set("offset", strconv.Itoa(offset))
	}
	return "finished?" + q.Encode()
}

// between formats the time between two instants, if both are known.
func between(from, to *time.Time) string {
	if from == nil || to == nil || to.Before(*from) {
		return ""
	}
	return span(to.Sub(*from))
}

// finishedRecord returns the remembered data of a removed job; nil if there is none, or if the caller may not see it.
func (r *request) finishedRecord(id string) *finishedRow {
	jobs, err := r.service.Finished(r.Context(), r.caller, "", 0, maxFinished)
	if err != nil {
		return nil // the list of all queues is restricted
	}
	for _, j := range jobs {
		if j.ID == id || "seq:"+strconv.FormatUint(j.Seq, 10) == id {
			return &finishedRow{j, between(j.CreatedAt, j.LeasedAt), between(j.LeasedAt, j.FinishedAt)}
		}
	}
	return nil
}
