package console

import (
	"context"
	"errors"
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
	return setupOn(t, func(b core.Broker) core.Broker { return b })
}

// setupOn is setup with another broker in front of the engine.
func setupOn(t *testing.T, broker func(core.Broker) core.Broker) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: coretest.NewClock(), caller: service.Caller{Principal: access.Everyone}}
	var err error
	if f.engine, err = engine.Open(engine.Options{
		Dir: "data", FS: coretest.MemoryFS(), Clock: f.clock, Seed: 1, ManualTimers: true,
	}); err != nil {
		t.Fatal(err)
	}
	f.service, err = service.New(service.Options{
		Broker: broker(f.engine), Handles: core.NewHandleFormat("H:here"), Store: toyStore{f.engine},
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

// toyStore is the store of a test's engine, without backups and damage.
type toyStore struct{ *engine.Engine }

func (s toyStore) Backup(string) error                       { return nil }
func (s toyStore) BackupProgress(string) float64             { return 0 }
func (s toyStore) SendBackup() (service.BackupStream, error) { return nil, errors.New("no backup") }

func (s toyStore) CheckStore(context.Context, func(float64)) (*service.CheckReport, error) {
	return &service.CheckReport{}, nil
}

// Handler serves all pages below the root.
func (c *Console) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, h := range c.Routes() {
		mux.Handle(pattern, h)
	}
	return mux
}

// toyPort is the HTTP port of a test.
type toyPort struct {
	service *service.Service  // nil: the broker starts
	visitor *access.Principal // who needs no login; nil: everybody does
}

func (p toyPort) Service() *service.Service { return p.service }

func (p toyPort) Caller(*http.Request) (service.Caller, bool) {
	return service.Caller{Principal: p.visitor}, p.visitor != nil
}

func (p toyPort) Admit(http.ResponseWriter, *http.Request, service.Caller) bool { return true }

func (p toyPort) CheckSecret(_ *http.Request, secret string) (service.Caller, int) {
	if secret != "right" {
		return service.Caller{}, http.StatusUnauthorized
	}
	return service.Caller{Principal: access.Everyone}, http.StatusOK
}

func (p toyPort) Document() []byte { return []byte(`{"paths":{}}`) }

func (p toyPort) Status(err error) int {
	if service.IsCode(err, service.CodeForbidden) {
		return http.StatusForbidden
	}
	return http.StatusBadRequest
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
