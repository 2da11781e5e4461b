package cli

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"broker/operate/service"
)

// topRows is the maximum number of rows in a list of top.
const topRows = 200

// topTimeout bounds each request of top.
const topTimeout = 10 * time.Second

// topData is the broker's data for one view.
type topData struct {
	view    int
	err     error
	at      time.Time
	summary service.Summary
	queues  []service.Queue
	jobs    []service.Job
	job     *service.Job
	workers []service.Worker
}

// fetch asks the broker for the data of the view.
func (m *topModel) fetch() topData {
	d := topData{view: m.view, at: m.now()}
	ctx, cancel := within(m.ctx, topTimeout)
	defer cancel()
	_, d.err = m.client.call(ctx, http.MethodGet, "summary", nil, nil, &d.summary)
	if hasExit(d.err, ExitDenied) {
		d.err = nil // this principal may read some queues only
	}
	if d.err != nil {
		return d
	}
	query := url.Values{"limit": {strconv.Itoa(topRows)}}
	var page struct {
		Queues  []service.Queue
		Jobs    []service.Job
		Workers []service.Worker
	}
	switch m.screen {
	case screenQueues:
		query.Set("sort", topSorts[m.sort])
		_, d.err = m.client.call(ctx, http.MethodGet, "queues", query, nil, &page)
	case screenJobs:
		query.Set("queue", m.queue)
		query.Set("state", topStates[m.state])
		_, d.err = m.client.call(ctx, http.MethodGet, "jobs", query, nil, &page)
	case screenJob:
		_, d.err = m.client.call(ctx, http.MethodGet, "jobs/"+url.PathEscape(m.job), nil, nil, &d.job)
	case screenWorkers:
		_, d.err = m.client.call(ctx, http.MethodGet, "workers", query, nil, &page)
	}
	d.queues, d.jobs, d.workers = page.Queues, page.Jobs, page.Workers
	return d
}

// rates are computed from the counters of two answers.
type rates struct {
	at      time.Time
	total   service.QueueTotals
	queues  map[string]service.QueueTotals
	perS    map[string]flow
	allPerS flow
}

// flow is the rate of submitted and finished jobs per second.
type flow struct{ in, done float64 }

func flowBetween(before, after service.QueueTotals, seconds float64) flow {
	if seconds <= 0 || after.Submitted < before.Submitted || after.Done < before.Done { // the broker has restarted
		return flow{}
	}
	return flow{float64(after.Submitted-before.Submitted) / seconds, float64(after.Done-before.Done) / seconds}
}

func (r *rates) update(d *topData) {
	seconds := d.at.Sub(r.at).Seconds()
	total := service.QueueTotals{Submitted: d.summary.Totals.Submitted, Done: d.summary.Totals.Done}
	if !r.at.IsZero() {
		r.allPerS = flowBetween(r.total, total, seconds)
	}
	r.total = total
	if d.queues != nil {
		perS := make(map[string]flow, len(d.queues))
		counters := make(map[string]service.QueueTotals, len(d.queues))
		for i := range d.queues {
			q := &d.queues[i]
			if before, known := r.queues[q.Name]; known {
				perS[q.Name] = flowBetween(before, q.Totals, seconds)
			}
			counters[q.Name] = q.Totals
		}
		r.perS, r.queues = perS, counters
	} else {
		r.queues = nil // the next list of queues comes after an unknown span
	}
	r.at = d.at
}

// rows is the number of rows in the list that is shown.
func (m *topModel) rows() int {
	switch m.screen {
	case screenQueues:
		return len(m.data.queues)
	case screenJobs:
		return len(m.data.jobs)
	case screenJob:
		return len(m.detailLines())
	case screenWorkers:
		return len(m.data.workers)
	}
	return 0
}

// rowKey is the name of the row at a position of the screen; empty if rows have no names.
func (m *topModel) rowKey(i int) string {
	switch {
	case i < 0 || i >= m.rows():
	case m.screen == screenQueues:
		return m.data.queues[i].Name
	case m.screen == screenJobs:
		return m.data.jobs[i].ID
	case m.screen == screenWorkers:
		return m.data.workers[i].ID
	}
	return ""
}
