package console

import (
	"html/template"
	"slices"
	"strconv"
	"sync"
	"time"

	"broker/operate/service"
)

// worstQueues limits the number of queues on the overview.
const worstQueues = 8

// figure is a prominent number.
type figure struct {
	Label, Value, Unit, Note, URL string
	Dot                           string // the state whose colour it has
	Bad                           bool
	Spark                         template.HTML
}

type overviewData struct {
	First     *firstSteps // nil: jobs have been submitted
	Badges    []badge
	Figures   []figure
	Ranges    []choice
	Charts    []chart
	Here      template.URL // URL of the page
	Worst     []service.Queue
	Protocols []protocolRow
	Store     []fact
	Uptime    string
}

// badge is a label for the state of the broker.
type badge struct{ Class, Text, URL string }

// fact is a row of a list of facts.
type fact struct {
	Label, Value, Note string
	Bad                bool
}

type protocolRow struct {
	Name            string
	Clients, Leased int
	Accepted        uint64
}

func overviewPage(r *request) (*view, error) {
	if !rightsOf(r.caller, "").ReadAll { // the numbers cover all queues
		return r.back("queues", "")
	}
	sum, err := r.service.Summary(r.Context(), r.caller)
	if err != nil {
		return nil, err
	}
	h, chosen, err := r.history("")
	if err != nil {
		return nil, err
	}
	d := &overviewData{
		Badges: badges(&sum, r.console.options.Cluster, r.console.health.recent(r.Context()).Nodes),
		Charts: h.chartsOf("", r.marks("", chosen.span), sum.Jobs["ready"], sum.Jobs["leased"]),
	}
	d.Ranges = r.ranges(chosen)
	d.Uptime = span(r.console.options.Now().Sub(sum.StartedAt).Truncate(time.Second))
	if d.Worst, err = r.keptWorst(); err != nil {
		return nil, err
	}
	oldest := 0.0
	for _, q := range d.Worst {
		oldest = max(oldest, q.OldestS)
	}
	d.Figures = figures(&sum, h, oldest)
	for _, name := range protocolNames {
		row := protocolRow{
			Name: name, Clients: sum.Clients[name], Leased: sum.Leased[name], Accepted: sum.Sockets[name].Accepted,
		}
		if row != (protocolRow{Name: name}) {
			d.Protocols = append(d.Protocols, row)
		}
	}
	d.First = r.firstSteps(&sum)
	d.Store, err = r.storeFacts()
	return &view{page: "overview", title: "Overview", data: d}, err
}

// keptWorst caches worst for many tabs. Everybody who sees the overview may read every queue.
func (r *request) keptWorst() ([]service.Queue, error) {
	kept, now := &r.console.worst, r.console.options.Now()
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if kept.queues == nil || now.Sub(kept.at) >= historyFor || now.Before(kept.at) {
		queues, err := r.worst()
		if err != nil {
			return nil, err
		}
		kept.at, kept.queues = now, append([]service.Queue{}, queues...)
	}
	return kept.queues, nil
}

// keptQueues caches queues for a short time.
type keptQueues struct {
	mu     sync.Mutex // guards the rest
	at     time.Time
	queues []service.Queue // nil: not read yet
}

// worst returns the queues that need attention: paused queues with waiting jobs, then the queues whose jobs have waited
// longest, then the queues with the most dead jobs.
func (r *request) worst() (queues []service.Queue, err error) {
	if queues, err = r.service.PausedQueues(r.Context(), r.caller, worstQueues/4); err != nil {
		return nil, err
	}
	queues = slices.DeleteFunc(queues, func(q service.Queue) bool { return q.Ready == 0 })
	for i, sort := range []string{"-latency", "-dead", "-ready"} {
		room := []int{worstQueues * 5 / 8, worstQueues, worstQueues}[i] // both kinds of queues get half of the places
		list, _, err := r.service.Queues(r.Context(), r.caller, service.QueueFilter{Sort: sort, Limit: worstQueues})
		if err != nil {
			return nil, err
		}
		for _, q := range list {
			known := slices.ContainsFunc(queues, func(w service.Queue) bool { return w.Name == q.Name })
			if !known && len(queues) < room && (q.Dead > 0 || q.Ready > 0 || q.Paused) {
				queues = append(queues, q)
			}
		}
	}
	for i := range queues {
		if queues[i].Wait, err = r.service.QueueWait(r.Context(), r.caller, &queues[i]); err != nil {
			return nil, err
		}
	}
	return queues, nil
}

func badges(sum *service.Summary, cluster service.Cluster, nodes []service.ClusterNode) []badge {
	var all []badge
	if sum.Stopped {
		all = append(all, badge{Class: "failed", Text: "the store has failed"})
	}
	if sum.DiskFull {
		all = append(all, badge{Class: "failed", Text: "disk nearly full: new jobs are refused"})
	}
	if sum.DiskSlow {
		all = append(all, badge{Class: "failed", Text: "the disk is slow: a commit takes more than a second"})
	}
	if sum.Draining {
		all = append(all, badge{Class: "draining", Text: "draining"})
	}
	if len(all) == 0 {
		all = append(all, badge{Class: "ok", Text: "serving"})
	}
	if cluster == nil {
		return all
	}
	if len(nodes) > 0 {
		all = append(all, clusterBadge(nodes))
	}
	switch name := cluster.Numbers().Role; name {
	case "":
		all = append(all, badge{Class: "draining", Text: "not in the cluster yet"})
	case "leader":
		all = append(all, badge{Class: "leader", Text: "leads the cluster"})
	default:
		all = append(all, badge{Class: "ready", Text: name + " in the cluster"})
	}
	return all
}

func figures(sum *service.Summary, h *history, oldest float64) []figure {
	state := func(label, name, url string, spark template.HTML) figure {
		n := sum.Jobs[name]
		return figure{Label: label, Value: num(n), URL: url, Dot: name, Bad: name == "dead" && n > 0, Spark: spark}
	}
	return []figure{
		{
			Label: "in", Value: float(h.pace.in), Unit: "/s", Note: num(sum.Totals.Submitted) + " in all",
			Spark: h.sparkIn,
		},
		{
			Label: "done", Value: float(h.pace.done), Unit: "/s", Note: num(sum.Totals.Done) + " in all",
			Spark: h.sparkDone,
		},
		{
			Label: "failed", Value: float(h.pace.failed), Unit: "/s", Note: failureRate(sum), URL: "retrying",
			Spark: h.sparkFailed,
		},
		{Label: "oldest waiting", Value: secondsOr(oldest), Note: "in any queue", URL: "queues?sort=-latency"},
		{Label: "wait p95", Value: secondsOr(h.pace.waitP95), Note: "last minute", Spark: h.sparkWait},
		{Label: "run p95", Value: secondsOr(h.pace.runP95), Note: "last minute"},
		state("ready", "ready", "jobs?state=ready", h.sparkReady), state("running", "leased", "running", h.sparkLeased),
		state("scheduled", "scheduled", "scheduled", ""), state("blocked", "blocked", "jobs?state=blocked", ""),
		state("retrying", "retrying", "retrying", ""), state("dead", "dead", "dead", ""),
	}
}

// secondsOr formats a duration, or a dash for zero.
func secondsOr(s float64) string {
	if s == 0 {
		return "–"
	}
	return seconds(s)
}

// failureRate returns the failed runs as a share of all runs.
func failureRate(sum *service.Summary) string {
	ends := sum.Totals.Done + sum.Totals.Failed
	if ends == 0 {
		return "no run has ended"
	}
	return strconv.FormatFloat(100*float64(sum.Totals.Failed)/float64(ends), 'f', 1, 64) + " % of runs"
}

// storeFacts describes the store; nil if nothing is stored.
func (r *request) storeFacts() ([]fact, error) {
	st, err := r.service.Storage(r.caller)
	if err != nil {
		return nil, ignoreRefusal(err)
	}
	facts := []fact{{Label: "Size on disk", Value: size(st.DiskBytes)}}
	if st.FreeBytes > 0 {
		facts = append(facts, fact{Label: "Free on the disk", Value: size(st.FreeBytes)})
	}
	if c := st.Commits; c != nil && c.Count > 0 {
		facts = append(facts, fact{Label: "Commit", Value: seconds(c.P50S), Note: "p50"},
			fact{Label: "", Value: seconds(c.P99S), Note: "p99"})
	}
	if st.WriteStalls > 0 {
		facts = append(facts, fact{Label: "Write stalls", Value: num(st.WriteStalls), Bad: true})
	}
	return facts, nil
}
