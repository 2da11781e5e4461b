package httpapi

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/operate/service"
)

// apiFixture is the API on a real engine.
type apiFixture struct {
	t      *testing.T
	clock  *coretest.Clock
	engine *engine.Engine
	server *Server
	url    string
	client core.ClientID
	header http.Header // of every request
}

// setupAPI opens an engine whose timers fire only when the test advances the clock.
func setupAPI(t *testing.T, o Options) *apiFixture {
	t.Helper()
	return setupService(t, o, engine.Options{}, func(*service.Options) {})
}

// setupService is setupAPI with other options of the engine and of the service.
func setupService(t *testing.T, o Options, eo engine.Options, change func(*service.Options)) *apiFixture {
	t.Helper()
	f := &apiFixture{t: t, clock: coretest.NewClock(), header: make(http.Header)}
	eo.Dir, eo.FS, eo.Clock, eo.Seed, eo.ManualTimers = "data", coretest.MemoryFS(), f.clock, 1, true
	e, err := engine.Open(eo)
	if err != nil {
		t.Fatal(err)
	}
	f.engine = e
	so := service.Options{
		Broker:  e,
		Handles: core.NewHandleFormat("H:here"), Store: toyStore{e}, Cluster: o.Cluster,
	}
	change(&so)
	s, err := service.New(so)
	if err != nil {
		t.Fatal(err)
	}
	f.client = e.Open(core.ClientOptions{Protocol: core.Gearman, Wake: func() {}})
	o.Log, o.Now = zerolog.Nop(), f.clock.Now
	f.server = New(o)
	server := httptest.NewServer(f.server.HTTP().Handler)
	f.url = server.URL
	t.Cleanup(func() {
		server.Close()
		s.Close()
		if err := e.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	f.server.Ready(Backend{Broker: e, Service: s, Parts: toyParts{}})
	return f
}

// answer is a response of the API.
type answer struct {
	t      *testing.T
	what   string
	status int
	header http.Header
	text   []byte
}

// call sends a request. body is JSON text, or a value to encode as JSON.
func (f *apiFixture) call(method, path string, body any, change ...func(*http.Request)) answer {
	f.t.Helper()
	var text []byte
	switch b := body.(type) {
	case nil:
	case string:
		text = []byte(b)
	default:
		var err error
		if text, err = json.Marshal(b); err != nil {
			f.t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(f.t.Context(), method, f.url+path, bytes.NewReader(text))
	if err != nil {
		f.t.Fatal(err)
	}
	for name, values := range f.header {
		req.Header[name] = values
	}
	for _, c := range change {
		c(req)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	a := answer{t: f.t, what: method + " " + path, status: resp.StatusCode, header: resp.Header}
	if a.text, err = io.ReadAll(resp.Body); err != nil {
		f.t.Fatal(err)
	}
	if a.status >= http.StatusBadRequest {
		checkLocations(f.t, method, path, a.text)
	}
	return a
}

// want checks the status and returns the JSON object.
func (a answer) want(status int) map[string]any {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: %d %s, want %d", a.what, a.status, a.text, status)
	}
	if len(a.text) == 0 {
		return nil
	}
	var object map[string]any
	if err := json.Unmarshal(a.text, &object); err != nil {
		a.t.Fatalf("%s: %v: %s", a.what, err, a.text)
	}
	return object
}

// problem checks that the answer is a problem with that status and code.
func (a answer) problem(status int, code string) map[string]any {
	a.t.Helper()
	p := a.want(status)
	if got := a.header.Get("Content-Type"); got != problemType {
		a.t.Errorf("%s: content type %q", a.what, got)
	}
	if p["code"] != code || p["status"] != float64(status) || p["title"] != http.StatusText(status) ||
		p["detail"] == "" {
		a.t.Errorf("%s: %s, want code %s", a.what, a.text, code)
	}
	return p
}

// push submits a job and returns its view.
func (f *apiFixture) push(job map[string]any) map[string]any {
	f.t.Helper()
	return f.call("POST", "/api/v1/jobs", job).want(201)
}

// leaseOne leases a job of the queue q and returns the token and the job.
func (f *apiFixture) leaseOne() (string, map[string]any) {
	f.t.Helper()
	l := f.call("POST", "/api/v1/queues/q/lease", "{}").want(200)
	return l["lease"].(string), l["job"].(map[string]any)
}

func (f *apiFixture) state(id any) any {
	f.t.Helper()
	return f.call("GET", "/api/v1/jobs/"+url.PathEscape(id.(string)), nil).want(200)["state"]
}

// advance lets time pass and runs due timers.
func (f *apiFixture) advance(d time.Duration) {
	f.clock.Advance(d)
	f.engine.Tick()
}
