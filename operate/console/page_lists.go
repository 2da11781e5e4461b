package console

import (
	"cmp"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"broker/operate/service"
)

// joinURL appends a query to a path.
func joinURL(path string, query template.URL) template.URL { return template.URL(path) + query }

// workerRows is the number of workers and connections on a page.
const workerRows = 500

// workerRow is a worker with its connections, or a connection without a worker.
type workerRow struct {
	service.Worker
	Under []service.Worker
}

type workersData struct {
	Workers   []workerRow
	Protocols []choice
	Protocol  string // empty: all
	Faktory   bool   // at least one of them can be quieted
	Next      template.URL
}

func workersPage(r *request) (*view, error) {
	protocol := r.query.Get("protocol")
	workers, cursor, err := r.service.Workers(r.Context(), r.caller, protocol, workerRows, r.query.Get("cursor"))
	if err != nil {
		return nil, err
	}
	d := &workersData{
		Workers: workersOnTop(workers), Protocol: protocol, Next: r.nextPage("workers", cursor),
		Faktory: slices.ContainsFunc(workers, func(w service.Worker) bool { return w.State != "" }),
	}
	for _, name := range append([]string{""}, protocolNames...) {
		label := "All"
		if name != "" {
			label = protocolLabel(name)
		}
		d.Protocols = append(d.Protocols,
			choice{Label: label, URL: with(nil, "protocol", name), Chosen: name == protocol})
	}
	return &view{page: "workers", title: "Workers and connections", nav: "workers", data: d}, nil
}

// workersOnTop groups connections below their workers.
func workersOnTop(list []service.Worker) []workerRow {
	processes := map[string]int{} // by protocol and name
	rows := []workerRow{}
	key := func(protocol, name string) string { return protocol + " " + name }
	for _, w := range list {
		if w.Connections > 0 || w.State != "" {
			processes[key(w.Protocol, w.Name)] = len(rows)
			rows = append(rows, workerRow{Worker: w})
		}
	}
	for _, w := range list {
		if w.Connections > 0 || w.State != "" {
			continue
		}
		if i, ok := processes[key(w.Protocol, w.Worker)]; ok && w.Worker != "" {
			rows[i].Under = append(rows[i].Under, w)
			rows[i].Queues = append(rows[i].Queues, newNames(w.Queues, rows[i].Queues)...)
			rows[i].Waiting = rows[i].Waiting || w.Waiting
			continue
		}
		rows = append(rows, workerRow{Worker: w})
	}
	slices.SortStableFunc(rows,
		func(a, b workerRow) int { return cmp.Compare(workerRank(&a.Worker), workerRank(&b.Worker)) })
	return rows
}

// newNames returns the names that are not in known.
func newNames(names, known []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(known, name) })
}

// workerRank orders the workers of a page by stable properties: processes first, then connections with queues or a
// name.
func workerRank(w *service.Worker) int {
	switch {
	case w.State != "":
		return 0
	case len(w.Queues) > 0 || w.Name != "" || w.Worker != "":
		return 1
	}
	return 2
}

// workerQuestion returns the question before workers are stopped; ok is false for changes that need no confirmation.
func workerQuestion(id, do string) (q question, ok bool) {
	q = question{Path: "workers", Back: "workers"}
	switch {
	case do == "disconnect":
		q.Title, q.Button = "Disconnect "+id+"?", "Disconnect"
		q.Consequence = "Its connection is closed. The jobs that it holds by this connection are handed out again."
	case do == "terminate" && id == "":
		q.Title, q.Button = "Terminate all Faktory workers?", "Terminate all"
		q.Consequence = "Every Faktory worker exits after its next heartbeat. This cannot be undone: something else must start them again."
	case do == "terminate":
		q.Title, q.Button = "Terminate "+id+"?", "Terminate"
		q.Consequence = "The worker exits after its next heartbeat. This cannot be undone: something else must start it again."
	case do == "quiet" && id == "":
		q.Title, q.Button = "Quiet all Faktory workers?", "Quiet all"
		q.Consequence = "They finish what they have and take no more jobs. Only a restart of a worker undoes this."
	default:
		return q, false
	}
	return q, true
}

// changeWorker handles the buttons of a worker.
func changeWorker(r *request) (*view, error) {
	id := r.PostFormValue("id")
	if q, ok := workerQuestion(id, r.PostFormValue("do")); ok {
		if v := r.ask(q); v != nil {
			return v, nil
		}
	}
	if do := r.PostFormValue("do"); do != "disconnect" {
		n, err := r.service.SetWorkerState(r.Context(), r.caller, id, do)
		if err != nil {
			return nil, err
		}
		return r.back("workers", plural(n, "worker")+" will be told to "+map[string]string{
			"quiet": "take no more jobs", "terminate": "exit",
		}[do]+" with the next heartbeat.")
	}
	if err := r.service.Disconnect(r.Context(), r.caller, id); err != nil {
		return nil, err
	}
	return r.back("workers", "The connection is closed.")
}

type operationsData struct{ Operations []service.Operation }

func operationsPage(r *request) (*view, error) {
	list, err := r.service.Operations(r.caller)
	if err != nil {
		return nil, err
	}
	return &view{page: "operations", title: "Operations", nav: "operations", data: operationsData{list}}, nil
}

// changeOperation cancels an operation.
func changeOperation(r *request) (*view, error) {
	if _, err := r.service.CancelOperation(r.caller, r.PostFormValue("id")); err != nil {
		return nil, err
	}
	return r.back("operations", "The operation ends after its present step.")
}

// pendingText describes the effect of a pending operation.
func pendingText(o service.Operation) string {
	jobs := plural(o.Matched, "job")
	if o.Action == "jobs."+string(service.ActionDelete) {
		return "Delete " + jobs
	}
	return o.Action + " of " + jobs
}

type auditData struct {
	Entries []service.AuditEntry
	Next    template.URL
}

func auditPage(r *request) (*view, error) {
	before, err := strconv.ParseUint("0"+r.query.Get("before"), 10, 64)
	if err != nil {
		return nil, invalid("before", "expected the number of an entry")
	}
	entries, err := r.service.Audit(r.caller, before, pageRows)
	if err != nil {
		return nil, err
	}
	d := &auditData{Entries: entries}
	if len(entries) == pageRows {
		d.Next = joinURL("audit", with(nil, "before", strconv.FormatUint(entries[len(entries)-1].Number, 10)))
	}
	return &view{page: "audit", title: "Audit log", nav: "audit", data: d}, nil
}

// settingsSection has the settings of one table of the settings file.
type settingsSection struct {
	Name     string
	Settings []service.Setting
}

type settingsData struct {
	Sections []settingsSection
	Changed  int
}

func settingsPage(r *request) (*view, error) {
	list, err := r.service.Settings(r.caller)
	if err != nil && !service.IsCode(err, service.CodeUnsupported) {
		return nil, err
	}
	d := &settingsData{}
	for _, s := range list {
		name, _, inTable := strings.Cut(s.Name, ".")
		if !inTable {
			name = "general"
		}
		i := slices.IndexFunc(d.Sections, func(o settingsSection) bool { return o.Name == name })
		if i < 0 {
			i = len(d.Sections)
			d.Sections = append(d.Sections, settingsSection{Name: name})
		}
		d.Sections[i].Settings = append(d.Sections[i].Settings, s)
		if s.Source != "default" {
			d.Changed++
		}
	}
	return &view{page: "settings", title: "Settings", nav: "settings", data: d, still: true}, nil
}

// took returns the run time of an operation.
func (c *Console) took(o service.Operation) string {
	end := c.options.Now()
	if o.FinishedAt != nil {
		end = *o.FinishedAt
	}
	return span(end.Sub(o.StartedAt))
}
