package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"broker/core"
	"broker/operate/service"
)

// toyBroker has fixed counters.
type toyBroker struct {
	core.Broker
	stopped atomic.Bool
	stats   core.Stats
	queues  []core.QueueInfo
	times   map[string]core.Histograms // by queue; "" for all other queues
	busiest []core.QueueInfo
}

func (b *toyBroker) Stopped() bool                         { return b.stopped.Load() }
func (b *toyBroker) Open(core.ClientOptions) core.ClientID { return 1 }
func (b *toyBroker) Close(core.ClientID)                   {}

func (b *toyBroker) snapshot() *core.Stats {
	stats := b.stats
	return &stats
}

func (b *toyBroker) Do(_ core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	for _, op := range ops {
		switch op := op.(type) {
		case *core.ReadStats:
			into = append(into, core.Reply{Kind: core.Counted, Tag: op.Tag, Stats: b.snapshot()})
		case *core.ListQueues:
			queues := b.queues[:min(op.Limit, len(b.queues))]
			if op.Busiest {
				queues = b.busiest
			}
			into = append(into, core.Reply{Kind: core.Queues, Tag: op.Tag, Queues: queues})
		case *core.ReadHistograms:
			into = append(into,
				core.Reply{Kind: core.Answered, Tag: op.Tag, Answer: &core.Answer{Histograms: b.times[op.Queue]}})
		}
	}
	return into
}

const info = `{"now":"2026-01-02T03:04:05Z","faktory":{},"server":{"description":"D","faktory_version":"1.10.0",` +
	`"connections":3,"command_count":4,"uptime":5}}`

const shortInfo = `{"now":"2026-01-02T03:04:05Z","server":{"command_count":4,"connections":3,"description":"D","faktory_version":"1.10.0"}}`

// fixture is a server on a test server.
type fixture struct {
	*Server
	t      *testing.T
	broker *toyBroker
	url    string
}

func setup(t *testing.T, o Options) *fixture {
	t.Helper()
	o.Log = zerolog.Nop()
	f := &fixture{Server: New(o), t: t, broker: &toyBroker{}}
	f.startTimeout = 0 // most tests never make it ready
	server := httptest.NewServer(f.HTTP().Handler)
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *fixture) ready() {
	f.Ready(Backend{
		Broker: f.broker,
		Parts: toyParts{
			info: info, health: shortInfo,
			syncs:       core.Latency{Count: 2, Seconds: 0.5, UpTo: map[float64]uint64{0.25: 1, 1: 2}},
			connections: map[string]service.Connections{"gearman": {Open: 2, Accepted: 7, Refused: 1}},
		},
	})
}

// toyParts are the parts of a process. It is also the service's host.
type toyParts struct {
	info, health string
	syncs        core.Latency
	connections  map[string]service.Connections
	pushes       []service.PushTarget
}

func (p toyParts) Info() []byte                                { return []byte(p.info) }
func (p toyParts) Health() []byte                              { return []byte(p.health) }
func (p toyParts) SyncLatency() core.Latency                   { return p.syncs }
func (p toyParts) Connections() map[string]service.Connections { return p.connections }
func (p toyParts) PushTargets() []service.PushTarget           { return p.pushes }
func (p toyParts) SQSActions() []SQSAction                     { return nil }
func (p toyParts) ArchiveStatus() *core.Archive                { return nil }
func (p toyParts) SpanCounts() (sent, dropped uint64, on bool) { return 0, 0, false }
func (p toyParts) Reload() error                               { return nil }
func (p toyParts) SettingsInForce() []service.Setting          { return nil }
func (p toyParts) Audited(service.AuditEntry)                  {}

func (f *fixture) get(path, password string) (status int, body string) {
	f.t.Helper()
	req, err := http.NewRequest(http.MethodGet, f.url+path, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	if password != "" {
		req.SetBasicAuth("anybody", password)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(text))
}

func (f *fixture) want(path string, status int, body string) {
	f.t.Helper()
	gotStatus, got := f.get(path, "")
	if gotStatus != status || got != body {
		f.t.Errorf("%s: got %d %s, want %d %s", path, gotStatus, got, status, body)
	}
}

func TestReadinessFollowsTheLifeOfTheProcess(t *testing.T) {
	t.Parallel()
	f := setup(t, Options{})
	f.Progress(1000, 0.25)
	f.want("/readyz", 503, `{"phase":"recovering","progress":{"jobs":1000,"part":0.25},"ready":false}`)
	f.want("/healthz", 200, `{"status":"ok"}`)
	for _, path := range []string{"/stats", "/health"} {
		if status, body := f.get(path, ""); status != 503 || !strings.Contains(body, `"code":"starting"`) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	f.ready()
	f.want("/readyz", 200, `{"ready":true}`)
	f.Listener().DiskFull(true, 5)
	f.want("/healthz", 200, `{"status":"disk nearly full, new jobs are refused"}`)
	f.Listener().DiskFull(false, 5)
	f.want("/healthz", 200, `{"status":"ok"}`)
	f.broker.stopped.Store(true)
	f.want("/healthz", 503, `{"status":"store failed, no work is taken"}`)
	f.want("/readyz", 503, `{"phase":"store failed","ready":false}`)
	f.Stopping()
	f.want("/readyz", 503, `{"phase":"stopping","ready":false}`)
}

func TestFaktoryStatisticsAreServed(t *testing.T) {
	t.Parallel()
	f := setup(t, Options{})
	f.ready()
	f.want("/stats", 200, info)
	f.want("/health", 200, shortInfo)
	if status, _ := f.get("/nothing", ""); status != 404 {
		t.Errorf("an unknown path: %d", status)
	}
}

func TestPasswordGuardsAllButHealth(t *testing.T) {
	t.Parallel()
	f := setup(t, Options{Password: "pw"})
	f.ready()
	for path, guarded := range map[string]bool{
		"/healthz": false, "/readyz": false, "/health": false, "/stats": true, "/metrics": true,
	} {
		for _, password := range []string{"", "wrong", "pw"} {
			want := 200
			if guarded && password != "pw" {
				want = 401
			}
			if got, _ := f.get(path, password); got != want {
				t.Errorf("%s with password %q: %d", path, password, got)
			}
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	f := setup(t, Options{Version: "v1"})
	_, body := f.get("/metrics", "")
	f.lines(body, "broker_ready 0")
	f.broker.queues = []core.QueueInfo{
		{Name: "a", High: 1, Normal: 2, Low: 3, Leased: 4, Workers: 5}, {Name: "b", Dead: 1},
	}
	f.broker.stats.Queues = 3
	f.broker.stats.Jobs[core.Ready] = 10
	f.broker.stats.Jobs[core.Dead] = 1
	f.broker.stats.LeasedBy[core.Workq] = 4
	f.broker.stats.Due[core.Retrying] = 6
	f.broker.stats.ByOrigin[core.Gearman].Submitted = 100 // before this start
	f.ready()
	later := f.broker.stats
	later.ByOrigin[core.Gearman].Submitted = 112
	later.ByWorker[core.Faktory].Done = 7
	f.broker.stats = later
	f.broker.queues[0].Counts.Submitted[core.Gearman] = 10
	f.broker.queues[0].Counts.Done[core.Faktory] = 7
	f.Listener().CommitDone(3, 2*time.Millisecond)
	f.Listener().Recovered(f.broker.stats.Jobs, 1500*time.Millisecond)
	_, body = f.get("/metrics", "")
	f.lines(
		body, "broker_ready 1", "broker_store_failed 0", "broker_disk_low 0", `broker_build_info{version="v1"} 1`,
		`broker_jobs{queue="a",state="ready"} 6`, `broker_jobs{queue="a",state="leased"} 4`,
		`broker_jobs{queue="b",state="dead"} 1`, `broker_jobs{queue="(other)",state="ready"} 4`,
		`broker_submitted_jobs_total{protocol="gearman",queue="a"} 10`,
		`broker_submitted_jobs_total{protocol="gearman",queue="(other)"} 2`,
		`broker_finished_jobs_total{protocol="faktory",queue="a"} 7`,
		`broker_queue_workers{queue="a"} 5`, `broker_held_jobs{protocol="workq"} 4`,
		`broker_due_jobs_total{state="retrying"} 6`, "broker_queues 3",
		`broker_connections{protocol="gearman"} 2`, `broker_accepted_connections_total{protocol="gearman"} 7`,
		`broker_refused_connections_total{protocol="gearman"} 1`, "broker_commit_records_sum 3",
		`broker_commit_seconds_bucket{le="0.0032"} 1`, `broker_commit_seconds_bucket{le="0.0016"} 0`,
		"broker_recovery_seconds 1.5",
		`broker_sync_seconds_bucket{le="0.25"} 1`, "broker_sync_seconds_sum 0.5", "broker_sync_seconds_count 2",
	)
}

func (f *fixture) lines(body string, wants ...string) {
	f.t.Helper()
	for _, want := range wants {
		if !strings.Contains("\n"+body+"\n", "\n"+want+"\n") {
			f.t.Errorf("no line %s in\n%s", want, body)
		}
	}
}

func TestQueuesBeyondTheBoundShareOneLabel(t *testing.T) {
	t.Parallel()
	f := setup(t, Options{})
	f.broker.busiest = []core.QueueInfo{{Name: "busy", Normal: 2}, {Name: "busier", Normal: 3}}
	f.broker.stats.Queues = maxQueues + 1
	f.broker.stats.Jobs[core.Ready] = 505
	f.ready()
	_, body := f.get("/metrics", "")
	f.lines(body, `broker_jobs{queue="busy",state="ready"} 2`, `broker_jobs{queue="busier",state="ready"} 3`,
		`broker_jobs{queue="(other)",state="ready"} 500`)
	if n := strings.Count(body, `state="ready"`); n != 3 {
		t.Errorf("%d queues have labels of their own", n)
	}
}

func TestMetricsContainWaitAndRunTimes(t *testing.T) {
	t.Parallel()
	f := setup(t, Options{})
	f.broker.queues = make([]core.QueueInfo, 3*histogramPage+1)
	f.broker.times = map[string]core.Histograms{}
	times := func(wait ...time.Duration) core.Histograms {
		h := core.Histograms{Wait: new(core.Histogram), Run: new(core.Histogram)}
		for _, d := range wait {
			h.Wait.Add(d)
			h.Run.Add(2 * d)
		}
		return h
	}
	for i := range f.broker.queues {
		name := "q" + strconv.Itoa(i)
		f.broker.queues[i] = core.QueueInfo{Name: name, OldestAge: time.Duration(i) * time.Second}
		f.broker.queues[i].Counts.Expired, f.broker.queues[i].Counts.Released, f.broker.queues[i].Counts.Dead = 1, 2, 3
		f.broker.times[name] = times(time.Duration(i) * time.Second)
	}
	f.broker.times["q7"] = times(time.Millisecond, 2*time.Millisecond, 30*time.Second)
	f.broker.times[""] = times(time.Hour)
	f.ready()
	f.get("/metrics", "")
	f.broker.stats.Totals = core.Totals{Expired: 200, Released: 400, Dead: 600}
	_, body := f.get("/metrics", "")
	f.lines(body,
		`broker_wait_seconds_bucket{queue="q7",le="0.001024"} 1`,
		`broker_wait_seconds_bucket{queue="q7",le="0.004096"} 2`,
		`broker_wait_seconds_bucket{queue="q7",le="16.777216"} 2`,
		`broker_wait_seconds_bucket{queue="q7",le="67.108864"} 3`,
		`broker_wait_seconds_bucket{queue="q7",le="+Inf"} 3`, `broker_wait_seconds_count{queue="q7"} 3`,
		`broker_wait_seconds_sum{queue="q7"} 30.003`, `broker_run_seconds_sum{queue="q7"} 60.006`,
		`broker_wait_seconds_sum{queue="(other)"} 3600`, `broker_run_seconds_count{queue="q150"} 1`,
		`broker_oldest_ready_job_seconds{queue="q9"} 9`, `broker_expired_jobs_total{queue="q9"} 1`,
		`broker_released_jobs_total{queue="q9"} 2`, `broker_dead_jobs_total{queue="q9"} 3`,
		`broker_expired_jobs_total{queue="(other)"} 49`, `broker_dead_jobs_total{queue="(other)"} 147`,
	)
}
