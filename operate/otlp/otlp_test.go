package otlp_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/operate/otlp"
)

const (
	sampled   = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	unsampled = "00-11111111111111111111111111111111-2222222222222222-00"
)

// fixture is an exporter of a real engine and a collector.
type fixture struct {
	t        *testing.T
	clock    *coretest.Clock
	engine   *engine.Engine
	exporter *otlp.Exporter
	client   core.ClientID
	spans    chan *otlp.Span
	status   atomic.Int32 // what the collector answers
	held     chan bool    // receives a request that the collector does not answer; nil: it answers all
	failures chan error   // what the exporter reports
}

func setup(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{
		t: t, clock: coretest.NewClock(), spans: make(chan *otlp.Span, 1000), failures: make(chan error, 1000),
	}
	f.status.Store(http.StatusOK)
	collector := httptest.NewServer(http.HandlerFunc(f.collect))
	e, err := engine.Open(engine.Options{
		Dir: "data", FS: coretest.MemoryFS(), Clock: f.clock, Seed: 1, ManualTimers: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	f.engine = e
	f.exporter, err = otlp.Open(otlp.Options{
		Broker: e, Endpoint: collector.URL + "/", Service: "here", Version: "1",
		Failed: func(err error) { f.failures <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	f.client = e.Open(core.ClientOptions{Protocol: core.Faktory, Wake: func() {}})
	t.Cleanup(func() {
		if f.exporter != nil {
			f.exporter.Close()
		}
		collector.Close()
		if err := e.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// collect is the collector: it passes the spans of a request on if it accepts them.
func (f *fixture) collect(w http.ResponseWriter, r *http.Request) {
	if held := f.held; held != nil {
		f.held = nil
		_, _ = io.Copy(io.Discard, r.Body) // needed to notice the end of the connection
		held <- true
		<-r.Context().Done()
		return
	}
	if code := int(f.status.Load()); code != http.StatusOK {
		w.WriteHeader(code)
		return
	}
	body, err := io.ReadAll(r.Body)
	var data otlp.TracesData
	if err == nil {
		err = json.Unmarshal(body, &data)
	}
	if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
		f.t.Errorf("request for %s with %s: %v", r.URL.Path, r.Header, err)
	}
	for _, rs := range data.ResourceSpans {
		if a := rs.Resource.Attributes[0]; a.Key != "service.name" || a.Value.String != "here" {
			f.t.Errorf("resource %v", rs.Resource)
		}
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				f.spans <- s
			}
		}
	}
}

func (f *fixture) do(ops ...core.Op) []core.Reply {
	f.t.Helper()
	replies := f.engine.Do(f.client, ops, nil)
	for _, r := range replies {
		if r.Kind == core.Failed {
			f.t.Fatalf("refused: %v", r.Err)
		}
	}
	return replies
}

func (f *fixture) submit(trace string) uint64 { return f.submitAs("the-job", trace) }

func (f *fixture) submitAs(id, trace string) uint64 {
	f.t.Helper()
	return f.do(&core.Submit{Job: &core.Job{
		ID: id, Queue: "mail", Type: "Welcome", Origin: core.Faktory, Trace: trace, MaxFails: 1,
	}})[0].Seq
}

func (f *fixture) lease() {
	f.t.Helper()
	f.do(&core.Lease{Queues: []string{"mail"}, Holder: core.HeldByWorker, Worker: "w1"})
}

// next returns the next span as text, and its duration.
func (f *fixture) next(name string) (*otlp.Span, map[string]string, time.Duration) {
	f.t.Helper()
	select {
	case s := <-f.spans:
		attributes := make(map[string]string)
		for _, a := range s.Attributes {
			attributes[a.Key] = a.Value.String
		}
		if s.Name != name || s.TraceID != sampled[3:35] || s.ParentSpanID != sampled[36:52] || len(s.SpanID) != 16 ||
			s.TraceState != "a=1" || attributes["messaging.destination.name"] != "mail" ||
			attributes["messaging.message.id"] != "the-job" || attributes["messaging.system"] != "broker" {
			f.t.Errorf("span %v, want %s", s, name)
		}
		return s, attributes, time.Duration(s.End - s.Start)
	case <-f.t.Context().Done():
		f.t.Fatalf("no span %s", name)
	}
	return nil, nil, 0
}

func TestSpansMeasureWaitAndRun(t *testing.T) {
	t.Parallel()
	f := setup(t)
	seq := f.submit(sampled + " a=1")
	f.clock.Advance(2 * time.Second)
	f.lease()
	f.clock.Advance(3 * time.Second)
	f.do(&core.Complete{Ref: core.Ref{Seq: seq}, Authority: core.ByLeased})
	if s, a, took := f.next("publish mail"); took != 0 || s.Kind != otlp.ProducerSpan ||
		a["messaging.operation.type"] != "send" || a["broker.job.type"] != "Welcome" ||
		a["broker.protocol"] != "faktory" {
		t.Errorf("published: %v", s)
	}
	if s, _, took := f.next("wait mail"); took != 2*time.Second || s.Kind != otlp.InternalSpan {
		t.Errorf("waited: %v", s)
	}
	s, a, took := f.next("process mail")
	if took != 3*time.Second || s.Kind != otlp.ConsumerSpan || a["messaging.operation.type"] != "process" ||
		a["messaging.client.id"] != "w1" || a["broker.outcome"] != "done" || s.Status != nil {
		t.Errorf("processed: %v", s)
	}
}

func TestAFailedRunIsAnError(t *testing.T) {
	t.Parallel()
	f := setup(t)
	seq := f.submit(sampled + " a=1")
	f.lease()
	f.do(&core.Fail{
		Ref: core.Ref{Seq: seq}, Authority: core.ByLeased, Failure: &core.Failure{Type: "Boom", Message: "secret"},
	})
	f.next("publish mail")
	f.next("wait mail")
	if s, a, _ := f.next("process mail"); s.Status == nil || s.Status.Code != otlp.StatusError ||
		s.Status.Message != "Boom" ||
		a["error.type"] != "Boom" || a["broker.outcome"] != "failed" {
		t.Errorf("processed: %v", s)
	}
}

func TestOnlySampledTracesMakeSpans(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, trace := range []string{"", unsampled, "garbage", sampled + " a=1"} {
		seq := f.submit(trace)
		if trace != sampled+" a=1" {
			f.do(&core.Cancel{Ref: core.Ref{Seq: seq}})
		}
	}
	f.next("publish mail")
	if sent, dropped := f.exporter.Counts(); dropped != 0 || sent > 1 {
		t.Errorf("%d sent, %d dropped", sent, dropped)
	}
}

func TestSpansWaitForACollectorThatIsAway(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.status.Store(http.StatusServiceUnavailable)
	f.submit(sampled + " a=1")
	if err := <-f.failures; err == nil {
		t.Error("the failure is not reported")
	}
	f.status.Store(http.StatusOK)
	f.next("publish mail")
	if err := <-f.failures; err != nil {
		t.Errorf("reported %v after the collector came back", err)
	}
	if _, dropped := f.exporter.Counts(); dropped != 0 {
		t.Errorf("%d dropped", dropped)
	}
}

func TestRefusedSpansAreDroppedAndCounted(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.status.Store(http.StatusBadRequest)
	f.submit(sampled + " a=1")
	if err := <-f.failures; err == nil {
		t.Error("the failure is not reported")
	}
	if sent, dropped := f.exporter.Counts(); sent != 0 || dropped != 1 {
		t.Errorf("%d sent, %d dropped", sent, dropped)
	}
}

// The core keeps 20,000 events for the exporter. If the collector does not answer, further events are lost, but no
// jobs.
func TestASlowCollectorLosesSpansNotJobs(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.status.Store(http.StatusServiceUnavailable)
	f.submit(sampled + " a=1")
	if err := <-f.failures; err == nil { // from now on the exporter waits before it retries
		t.Fatal("the failure is not reported")
	}
	const jobs = 25_000
	for range jobs / 1000 {
		ops := make([]core.Op, 1000)
		for i := range ops {
			ops[i] = &core.Submit{Job: &core.Job{Queue: "many", Origin: core.Faktory, Trace: sampled}}
		}
		f.do(ops...)
	}
	var stats *core.Stats
	for _, r := range f.do(&core.ReadStats{}) {
		stats = r.Stats
	}
	if stats.Jobs[core.Ready] != jobs+1 {
		t.Errorf("%d jobs are ready", stats.Jobs[core.Ready])
	}
	f.status.Store(http.StatusOK)
	f.next("publish mail")
	<-f.spans                      // the first of many: the others were fetched with it
	f.submitAs("another", sampled) // its event reports how many were lost before
	for s := range f.spans {
		if s.Name == "publish mail" {
			break
		}
	}
	if _, dropped := f.exporter.Counts(); dropped != jobs-20_000 {
		t.Errorf("%d dropped", dropped)
	}
}

func TestCloseSendsTheRemainingSpans(t *testing.T) {
	t.Parallel()
	f := setup(t)
	job := &core.Job{ID: "the-job", Queue: "mail", Origin: core.Faktory, Trace: sampled + " a=1"}
	commit := f.do(&core.Submit{Job: job})[0].Commit
	for f.engine.Committed() < commit { // the event depends on it
		<-time.After(time.Millisecond)
	}
	f.exporter.Close()
	f.exporter = nil
	f.next("publish mail")
}

func TestCloseResendsTheBatchInTransit(t *testing.T) {
	t.Parallel()
	f := setup(t)
	held := make(chan bool, 1)
	f.held = held
	f.submit(sampled + " a=1")
	<-held
	f.exporter.Close()
	f.exporter = nil
	f.next("publish mail")
}
