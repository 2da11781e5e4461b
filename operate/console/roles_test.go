package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/operate/service"
)

// Roles without patterns, as the walk tries them, and the letter of each in the tables.
var walkedRoles = []struct{ letter, role string }{
	{"-", ""}, {"r", "read"}, {"p", "produce"}, {"c", "consume"}, {"o", "operate"}, {"a", "admin"},
}

// pageRoles says who may see each page: the letters of the roles.
var pageRoles = map[string]string{
	"/{$}":    "-rpcoa", // who may not read everything is sent to the queues
	"/queues": "-rpcoa", "/queues/{name}": "roa", "/jobs": "-rpcoa", "/jobs/{id}": "roa", "/jobs/{id}/body": "roa",
	"/running":   "-rpcoa",
	"/scheduled": "-rpcoa", "/retrying": "-rpcoa", "/dead": "-rpcoa", "/finished": "roa", "/batches": "roa",
	"/batches/{id}": "rpoa", "/workflows/{id}": "roa", "/storage": "roa",
	"/api": "-rpcoa", "/schedules": "roa", "/schedules/{name}": "roa", "/cluster": "roa", "/limits": "-rpcoa",
	"/workers": "roa", "/submit": "pa", "/operations": "roa",
	"/audit": "a", "/settings": "a", "/jump": "-rpcoa", "/complete": "-rpcoa",
}

// formRoles says who may send each form, and formBodies what is sent.
var (
	formRoles = map[string]string{
		"/queues": "oa", "/queues/{name}": "oa", "/jobs": "oa", "/jobs/{id}": "oa", "/workers": "oa", "/submit": "pa",
		"/operations": "oa", "/storage": "oa", "/schedules": "oa", "/limits": "oa", "/cluster": "a", "/support": "a",
		"/undo": "oa",
	}
	formBodies = map[string]string{
		"/queues": "do=pause&id=q", "/queues/{name}": "do=pause", "/jobs": "action=kill&id={id}&confirmed=yes",
		"/jobs/{id}": "do=kill&confirmed=yes",
		"/workers":   "do=quiet&id=1", "/submit": "queue=q&body=x", "/operations": "id={operation}",
		"/storage":   "do=check",
		"/schedules": "do=pause&name=q", "/limits": "do=remove&queue=q&scope=queue&confirmed=yes",
		"/cluster": "do=transfer&confirmed=yes", "/support": "", "/undo": "ids={operation}",
	}
)

// TestRolesLimitPagesAndChanges asks for every page, and sends every form, as a principal of each role and of none.
func TestRolesLimitPagesAndChanges(t *testing.T) {
	t.Parallel()
	// by path: the letters of the roles that are not refused
	mayShow, mayChange := map[string]string{}, map[string]string{}
	for _, one := range walkedRoles {
		pages := newWalk(t, one.role)
		for path := range pagesByPath {
			if pages.status(http.MethodGet, path, "") != http.StatusForbidden {
				mayShow[path] += one.letter
			}
		}
		pages.close()
		for path := range formsByPath {
			changed := newWalk(t, one.role) // since a form may remove what the next one is about
			if changed.status(http.MethodPost, path, formBodies[path]) != http.StatusForbidden {
				mayChange[path] += one.letter
			}
			changed.close()
		}
	}
	for path := range pagesByPath {
		if want, known := pageRoles[path]; !known || mayShow[path] != want {
			t.Errorf("GET %s: %s may, want %s (listed: %v)", path, mayShow[path], want, known)
		}
	}
	for path := range formsByPath {
		if want, known := formRoles[path]; !known || mayChange[path] != want {
			t.Errorf("POST %s: %s may, want %s (listed: %v)", path, mayChange[path], want, known)
		}
	}
}

// walk is the console of a broker with a job, a batch, a schedule and an operation.
type walk struct {
	*Console

	job, batch, operation string
	close                 func()
}

// newWalk makes a console whose visitor has one role, or none.
func newWalk(t *testing.T, role string) *walk {
	t.Helper()
	e, err := engine.Open(engine.Options{
		Dir: "data", FS: coretest.MemoryFS(), Clock: coretest.NewClock(), Seed: 1, ManualTimers: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := service.New(service.Options{
		Broker: e, Handles: core.NewHandleFormat("H:here"), Store: toyStore{e},
	})
	if err != nil {
		t.Fatal(err)
	}
	root := service.Caller{Principal: access.Everyone}
	jobs, err := s.Submit(t.Context(), root, []service.Submission{{Queue: "q"}}, service.SubmitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutSchedule(t.Context(), root,
		service.ScheduleChange{Name: "q", EveryS: 60, Job: service.Submission{Queue: "q"}}, true); err != nil {
		t.Fatal(err)
	}
	operation, err := s.StartAction(t.Context(), root, service.Action{Action: service.ActionRetry},
		service.Selection{Names: []string{jobs[0].ID}})
	if err != nil {
		t.Fatal(err)
	}
	batch, err := s.OpenBatch(t.Context(), root, service.BatchSubmission{Success: &service.Submission{Queue: "q"}})
	if err != nil {
		t.Fatal(err)
	}
	return &walk{consoleAs(t, s, principalOf(t, role)), jobs[0].ID, batch.ID, operation.ID, func() {
		s.Close()
		_ = e.Shutdown() // in memory
	}}
}

// status makes a request and returns the status of the answer.
func (w *walk) status(method, path, form string) int {
	id := w.job
	if strings.HasPrefix(path, "/batches") {
		id = w.batch
	}
	fill := strings.NewReplacer("{id}", id, "{operation}", w.operation, "{name}", "q", "{$}", "")
	r := httptest.NewRequest(method, "http://localhost"+fill.Replace(path), strings.NewReader(fill.Replace(form)))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer := httptest.NewRecorder()
	w.Handler().ServeHTTP(answer, r)
	return answer.Code
}

// consoleAs is a console whose visitor is a principal.
func consoleAs(t *testing.T, s *service.Service, p *access.Principal) *Console {
	t.Helper()
	c, err := New(Options{
		Port: toyPort{s, p}, Now: func() time.Time { return s.Now().Time() },
		Failed: func(page string, err error) { t.Errorf("%s: %v", page, err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// principalOf has one role, or none.
func principalOf(t *testing.T, role string) *access.Principal {
	t.Helper()
	entry := access.Entry{Name: "p"}
	if role != "" {
		g, err := access.ParseGrant(role)
		if err != nil {
			t.Fatal(err)
		}
		entry.Grants = []access.Grant{g}
	}
	control := &access.Control{}
	control.Load([]access.Entry{entry})
	return control.Default("p")
}
