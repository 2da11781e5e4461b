package httpapi

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"broker/access"
	"broker/core"
	"broker/operate/service"
)

// maxQueues limits the values of the queue label. If there are more queues, the busiest get their own labels. All
// others are counted together under otherQueues, which is never the label of a queue.
const (
	maxQueues   = core.MaxDetailed
	otherQueues = "(other)"
)

// metrics collects the metrics: counters that it reads from the broker at each scrape, and events that the engine
// reports to it.
type metrics struct {
	core.NopListener
	registry *prometheus.Registry
	backend  *atomic.Pointer[Backend]
	cluster  func() service.ClusterNumbers // nil: none
	control  *access.Control

	commitSeconds prometheus.Histogram
	slowCommits   prometheus.Counter
	commitRecords prometheus.Histogram
	recovery      prometheus.Gauge
	diskLow       atomic.Bool
	damaged       atomic.Uint64 // jobs

	mu     sync.Mutex // guards base, and client, which one goroutine at a time uses
	client core.ClientID
	base   *core.Stats // counters when the server became ready; totals count from there
}

// describe makes the description of a metric.
func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("broker_"+name, help, labels, nil)
}

// The metrics that are read from the broker on each scrape.
var (
	jobsDesc      = describe("jobs", "Jobs by queue and state.", "queue", "state")
	workersDesc   = describe("queue_workers", "Workers that may take jobs of the queue.", "queue")
	submittedDesc = describe("submitted_jobs_total", "Jobs submitted since the start, by protocol.", "queue",
		"protocol")
	leasedDesc = describe("leased_jobs_total", "Leases since the start, by the worker's protocol.", "queue",
		"protocol")
	finishedDesc = describe("finished_jobs_total", "Jobs completed since the start, by the worker's protocol.",
		"queue", "protocol")
	failedDesc = describe("failed_jobs_total", "Failures since the start, by the worker's protocol.", "queue",
		"protocol")
	expiredDesc = describe("expired_jobs_total", "Unfinished jobs whose time to live ended, since the start.",
		"queue")
	releasedDesc = describe("released_jobs_total", "Leases given back or lost with their connection, since the start.",
		"queue")
	deadDesc   = describe("dead_jobs_total", "Moves to the dead set since the start.", "queue")
	oldestDesc = describe("oldest_ready_job_seconds", "Age of the ready job that has waited longest.", "queue")
	dueDesc    = describe("due_jobs_total",
		"Jobs whose timer fired since the start, by the state that it ended: scheduled, retrying, or leased where the lease ran out.",
		"state")
	heldDesc      = describe("held_jobs", "Leased jobs, by the worker's protocol.", "protocol")
	queuesDesc    = describe("queues", "Queues that exist.")
	openDesc      = describe("connections", "Open connections.", "protocol")
	acceptedDesc  = describe("accepted_connections_total", "Connections accepted.", "protocol")
	refusedDesc   = describe("refused_connections_total", "Connections refused at the limit.", "protocol")
	deniedDesc    = describe("denied_connections_total", "Connections refused by the allow-list.", "protocol")
	dismissedDesc = describe("dismissed_connections_total",
		"Connections closed because their client had no right and made room for others, or was above its share.", "protocol")
	lateDesc = describe("late_replies_total",
		"Replies that were held for a commit and left late, because nothing had woken their connection.", "protocol")
	stoppedDesc   = describe("store_failed", "1 once the store has failed and the broker serves reads only.")
	damagedDesc   = describe("damaged_jobs_total", "Jobs that the store could not read.")
	diskDesc      = describe("disk_low", "1 while new jobs are refused because the disk is nearly full.")
	forbiddenDesc = describe("forbidden_total", "Requests that the client's principal was not allowed to make.",
		"protocol")
	drainingDesc  = describe("draining", "1 while no jobs are leased.")
	syncDesc      = describe("sync_seconds", "Time of a sync of the store's log.")
	spansDesc     = describe("spans_sent_total", "Spans that the OpenTelemetry collector has accepted.")
	lostSpansDesc = describe("spans_dropped_total",
		"Spans, or events that would have made one, that were dropped because the collector did not accept them in time.")
	readyDesc = describe("ready", "1 while clients are served.")
	pushDesc  = describe("push_requests_total", "Jobs that were pushed to a URL, by what came of it.", "target",
		"outcome")
	pushTimeDesc = describe("push_seconds_total", "Time that the receivers of pushed jobs took for their answers.",
		"target")
	pushingDesc = describe("push_in_flight", "Pushed jobs that wait for their answer.", "target")
	sqsDesc     = describe("sqs_requests_total", "Requests of clients of SQS, by what came of them.", "action",
		"outcome")
	sqsTimeDesc = describe("sqs_seconds_total", "Time that replies to clients of SQS took, long polls included.",
		"action")
	pushPauseDesc = describe("push_paused",
		"1 while a target gets no jobs: it cannot be reached, or has asked for more time.", "target")
)

func newMetrics(version string, backend *atomic.Pointer[Backend], control *access.Control) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		backend:  backend,
		control:  control,
		commitSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "broker_commit_seconds",
			Help:    "Time of a commit: the write of a batch and, where durability asks for it, its sync.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
		}),
		commitRecords: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "broker_commit_records",
			Help:    "Records in a commit.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 9),
		}),
		slowCommits: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "broker_slow_commits_total",
			Help: "Commits that took more than a second. A commit is counted while it still runs.",
		}),
		recovery: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "broker_recovery_seconds",
			Help: "How long reading the store back took at the start.",
		}),
	}
	m.registry.MustRegister(
		m, m.commitSeconds, m.slowCommits, m.commitRecords, m.recovery,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "broker_build_info", Help: "Always 1; the label tells the version.",
			ConstLabels: prometheus.Labels{"version": version},
		}, func() float64 { return 1 }),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// CommitDone implements core.Listener.
func (m *metrics) CommitDone(records int, took time.Duration) {
	m.commitSeconds.Observe(took.Seconds())
	m.commitRecords.Observe(float64(records))
}

// CommitSlow implements core.Listener.
func (m *metrics) CommitSlow(time.Duration) { m.slowCommits.Inc() }

// Recovered implements core.Listener.
func (m *metrics) Recovered(_ [len(core.States) + 1]int, took time.Duration) {
	m.recovery.Set(took.Seconds())
}

// DiskFull implements core.Listener.
func (m *metrics) DiskFull(reached bool, _ uint64) { m.diskLow.Store(reached) }

// JobDamaged implements core.Listener.
func (m *metrics) JobDamaged(uint64, error) { m.damaged.Add(1) }

// isDiskLow reports whether the disk is nearly full. On a follower, the node checks its own disk.
func (m *metrics) isDiskLow() bool {
	if m.cluster != nil && m.backend.Load() == nil {
		return m.cluster().DiskLow
	}
	return m.diskLow.Load()
}

// Describe implements prometheus.Collector. It describes nothing, because the labels are not known in advance.
func (m *metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	s := scrape{out: out}
	b := m.backend.Load()
	var node service.ClusterNumbers
	if m.cluster != nil {
		node = m.cluster()
		s.clusterMetrics(node)
	}
	for _, p := range core.Protocols {
		if p != core.Internal {
			s.counter(forbiddenDesc, m.control.Refusals(p), p.String())
		}
	}
	if b == nil {
		s.gauge(readyDesc, truth(node.Serving))
		if m.cluster != nil {
			s.gauge(diskDesc, truth(node.DiskLow))
		}
		s.connections(node.Connections)
		return
	}
	s.gauge(readyDesc, 1)
	s.gauge(stoppedDesc, truth(b.Broker.Stopped()))
	s.gauge(diskDesc, truth(m.isDiskLow()))
	s.counter(damagedDesc, m.damaged.Load())
	s.connections(b.Parts.Connections())
	if l := b.Parts.SyncLatency(); l.Count > 0 {
		out <- prometheus.MustNewConstHistogram(syncDesc, l.Count, l.Seconds, l.UpTo)
	}
	if sent, dropped, on := b.Parts.SpanCounts(); on {
		s.counter(spansDesc, sent)
		s.counter(lostSpansDesc, dropped)
	}
	s.pushes(b.Parts.PushTargets())
	s.sqs(b.Parts.SQSActions())
	s.archive(b.Parts.ArchiveStatus())
	stats, base, queues, histograms := m.read(b.Broker)
	if stats == nil {
		return // the broker has stopped
	}
	s.gauge(drainingDesc, truth(stats.Draining))
	s.gauge(queuesDesc, float64(stats.Queues))
	s.jobs(stats, queues)
	s.totals(base, stats, queues)
	s.histograms(queues, histograms)
	for _, state := range []core.State{core.Scheduled, core.Retrying, core.Leased} {
		s.counter(dueDesc, stats.Due[state], state.String())
	}
	for _, p := range core.Protocols {
		if p != core.Internal {
			s.gauge(heldDesc, float64(stats.LeasedBy[p]), p.String())
		}
	}
}

// connections collects the connections to the front-ends of this node.
func (s scrape) connections(all map[string]service.Connections) {
	for protocol, c := range all {
		s.gauge(openDesc, float64(c.Open), protocol)
		s.counter(acceptedDesc, c.Accepted, protocol)
		s.counter(refusedDesc, c.Refused, protocol)
		s.counter(deniedDesc, c.Denied, protocol)
		s.counter(dismissedDesc, c.Dismissed, protocol)
		s.counter(lateDesc, c.Late, protocol)
	}
}

// forget drops a broker that has ended. The totals of the next broker count from its start.
func (m *metrics) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.client, m.base = 0, nil
	m.diskLow.Store(false) // the next broker checks its disk within a second
}

// read returns the broker's counters, now and at the start of the totals, the queues with their own labels, and their
// histograms.
func (m *metrics) read(b core.Broker) (stats, base *core.Stats, queues []core.QueueInfo, histograms []core.Histograms) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client == 0 {
		m.client = b.Open(core.ClientOptions{Protocol: core.Internal, Wake: func() {}})
	}
	const statsTag, queuesTag = 1, 2
	for _, r := range b.Do(m.client, []core.Op{&core.ReadStats{Tag: statsTag}}, nil) {
		stats = r.Stats
	}
	if stats == nil {
		return nil, nil, nil, nil
	}
	list := &core.ListQueues{Tag: queuesTag, Limit: maxQueues, Busiest: stats.Queues > maxQueues}
	for _, r := range b.Do(m.client, []core.Op{list}, nil) {
		queues = r.Queues
	}
	if m.base == nil {
		m.base = stats
	}
	return stats, m.base, queues, readHistograms(b, m.client, queues)
}

// scrape is a response in progress.
type scrape struct{ out chan<- prometheus.Metric }

func (s scrape) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s.out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (s scrape) counter(d *prometheus.Desc, v uint64, labels ...string) {
	s.out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

// pushes collects the metrics of pushed jobs.
func (s scrape) pushes(targets []service.PushTarget) {
	for i := range targets {
		t := &targets[i]
		name := label(t.Name)
		s.counter(pushDesc, t.Done, name, "done")
		s.counter(pushDesc, t.Failed, name, "failed")
		s.counter(pushDesc, t.Deferred, name, "deferred")
		s.counter(pushDesc, t.Unreachable, name, "unreachable")
		s.counter(pushDesc, t.Late, name, "late")
		s.out <- prometheus.MustNewConstMetric(pushTimeDesc, prometheus.CounterValue, t.Seconds, name)
		s.gauge(pushingDesc, float64(t.InFlight), name)
		s.gauge(pushPauseDesc, truth(t.PausedUntil != nil), name)
	}
}

// sqs collects the metrics of SQS requests.
func (s scrape) sqs(actions []SQSAction) {
	for i := range actions {
		a := &actions[i]
		s.counter(sqsDesc, a.Done, a.Name, "done")
		s.counter(sqsDesc, a.Refused, a.Name, "refused")
		s.counter(sqsDesc, a.Failed, a.Name, "failed")
		s.out <- prometheus.MustNewConstMetric(sqsTimeDesc, prometheus.CounterValue, a.Seconds, a.Name)
	}
}

// jobs collects the jobs of each listed queue by state, and of all other queues together.
func (s scrape) jobs(stats *core.Stats, queues []core.QueueInfo) {
	rest := stats.Jobs
	for i := range queues {
		q := &queues[i]
		for _, state := range core.States {
			n := inState(q, state)
			rest[state] -= n
			s.gauge(jobsDesc, float64(n), label(q.Name), state.String())
		}
		s.gauge(workersDesc, float64(q.Workers), label(q.Name))
		s.gauge(oldestDesc, q.OldestAge.Seconds(), label(q.Name))
	}
	if stats.Queues <= len(queues) {
		return
	}
	for _, state := range core.States {
		s.gauge(jobsDesc, float64(rest[state]), otherQueues, state.String())
	}
}

// label is the label of a queue. Gearman's names may be any bytes, but labels must be UTF-8 and unique. So a name is
// quoted as in Go if it is not UTF-8, equals otherQueues, or looks like a quoted name.
func label(queue string) string {
	if !utf8.ValidString(queue) || queue == otherQueues || strings.HasPrefix(queue, `"`) {
		return strconv.Quote(queue)
	}
	return queue
}

// inState is the number of jobs of a queue in a state.
func inState(q *core.QueueInfo, state core.State) int {
	switch state {
	case core.Scheduled:
		return q.Scheduled
	case core.Blocked:
		return q.Blocked
	case core.Ready:
		return q.Ready()
	case core.Leased:
		return q.Leased
	case core.Retrying:
		return q.Retrying
	case core.Done:
		return q.Done
	case core.Dead:
		return q.Dead
	case core.Gone:
		return 0
	}
	return 0
}

// totals collects the job counters since base, for each listed queue, and for all other and former queues together.
func (s scrape) totals(base, stats *core.Stats, queues []core.QueueInfo) {
	var rest core.QueueCounts
	for _, p := range core.Protocols {
		rest.Submitted[p] = minus(stats.ByOrigin[p].Submitted, base.ByOrigin[p].Submitted)
		rest.Leased[p] = minus(stats.ByWorker[p].Leased, base.ByWorker[p].Leased)
		rest.Done[p] = minus(stats.ByWorker[p].Done, base.ByWorker[p].Done)
		rest.Failed[p] = minus(stats.ByWorker[p].Failed, base.ByWorker[p].Failed)
	}
	rest.Expired = minus(stats.Totals.Expired, base.Totals.Expired)
	rest.Released = minus(stats.Totals.Released, base.Totals.Released)
	rest.Dead = minus(stats.Totals.Dead, base.Totals.Dead)
	for i := range queues {
		c := &queues[i].Counts
		s.counts(label(queues[i].Name), c)
		for _, p := range core.Protocols {
			rest.Submitted[p] = minus(rest.Submitted[p], c.Submitted[p])
			rest.Leased[p] = minus(rest.Leased[p], c.Leased[p])
			rest.Done[p] = minus(rest.Done[p], c.Done[p])
			rest.Failed[p] = minus(rest.Failed[p], c.Failed[p])
		}
		rest.Expired, rest.Released, rest.Dead = minus(rest.Expired,
			c.Expired), minus(rest.Released, c.Released), minus(rest.Dead, c.Dead)
	}
	s.counts(otherQueues, &rest)
}

// counts collects the counters of one queue, for the protocols that have used it.
func (s scrape) counts(queue string, c *core.QueueCounts) {
	for _, p := range core.Protocols {
		if c.Submitted[p]+c.Leased[p]+c.Done[p]+c.Failed[p] == 0 {
			continue
		}
		s.counter(submittedDesc, c.Submitted[p], queue, p.String())
		s.counter(leasedDesc, c.Leased[p], queue, p.String())
		s.counter(finishedDesc, c.Done[p], queue, p.String())
		s.counter(failedDesc, c.Failed[p], queue, p.String())
	}
	s.counter(expiredDesc, c.Expired, queue)
	s.counter(releasedDesc, c.Released, queue)
	s.counter(deadDesc, c.Dead, queue)
}

// minus returns a-b, but at least 0: the totals can be reset while the counters of a queue continue.
func minus(a, b uint64) uint64 {
	if a < b {
		return 0
	}
	return a - b
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
