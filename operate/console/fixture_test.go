package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/operate/service"
)

// fixture is a console on a broker whose clock the test moves.
type fixture struct {
	t       *testing.T
	clock   *coretest.Clock
	engine  *engine.Engine
	service *service.Service
	console *Console
	caller  service.Caller
}

func setup(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: coretest.NewClock(), caller: service.Caller{Principal: access.Everyone}}
	var err error
	if f.engine, err = engine.Open(engine.Options{
		Dir: "data", FS: coretest.MemoryFS(), Clock: f.clock, Seed: 1, ManualTimers: true,
	}); err != nil {
		t.Fatal(err)
	}
	f.service, err = service.New(service.Options{
		Broker: f.engine, Handles: core.NewHandleFormat("H:here"), Storage: f.engine.Storage,
		CheckStore: func(context.Context, func(float64)) (*service.CheckReport, error) {
			return &service.CheckReport{}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.console = consoleAs(t, f.service, access.Everyone)
	t.Cleanup(func() {
		f.service.Close()
		_ = f.engine.Shutdown() // in memory
	})
	return f
}

func (f *fixture) advance(d time.Duration) {
	f.clock.Advance(d)
	f.engine.Tick()
}

// get is the text of a page.
func (f *fixture) get(path string) string { return f.ask(http.MethodGet, path, nil) }

// post sends a form and returns the text of the answer.
func (f *fixture) post(path string, form url.Values) string {
	return f.ask(http.MethodPost, path, form)
}

func (f *fixture) ask(method, path string, form url.Values) string {
	f.t.Helper()
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	f.console.Handler().ServeHTTP(w, r)
	return w.Body.String()
}

// dies submits a job of the queue mail that fails for good with an error.
func (f *fixture) dies(class, message string) {
	f.t.Helper()
	f.diesOf("", class, message)
}

// diesOf is dies with the version of the worker's program.
func (f *fixture) diesOf(version, class, message string) {
	f.t.Helper()
	once := uint32(1)
	if _, err := f.service.Submit(f.t.Context(), f.caller, []service.Submission{{Queue: "mail", MaxFails: &once}},
		service.SubmitOptions{}); err != nil {
		f.t.Fatal(err)
	}
	from := service.LeaseOptions{Queues: []string{"mail"}, Version: version}
	lease, err := f.service.Lease(f.t.Context(), f.caller, from)
	if err != nil || lease == nil {
		f.t.Fatal(lease, err)
	}
	if err := f.service.Fail(f.t.Context(), f.caller, lease.Token,
		service.FailOptions{Class: class, Message: message}); err != nil {
		f.t.Fatal(err)
	}
}

// wants fails the test if a text lacks one of others.
func (f *fixture) wants(text string, wanted ...string) {
	f.t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			f.t.Errorf("the page lacks %q:\n%s", want, text[strings.Index(text, "<main")+1:])
		}
	}
}
