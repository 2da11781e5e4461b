package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"broker/access"
	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/operate/service"
)

// The page of a job has the lines of its log. Tabs are notified of new lines as of other changes.
func TestPageOfAJobShowsItsLog(t *testing.T) {
	t.Parallel()
	e, err := engine.Open(engine.Options{
		Dir: "data", FS: coretest.MemoryFS(), Clock: coretest.NewClock(), Seed: 1, ManualTimers: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Shutdown() }() // in memory
	s, err := service.New(service.Options{Broker: e, Handles: core.NewHandleFormat("H:here"), Store: toyStore{e}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := consoleAs(t, s, principalOf(t, "read"))
	root := service.Caller{Principal: access.Everyone}
	jobs, err := s.Submit(t.Context(), root, []service.Submission{{Queue: "q"}}, service.SubmitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	page := func() string {
		w := httptest.NewRecorder()
		c.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/jobs/"+jobs[0].ID, http.NoBody))
		return w.Body.String()
	}
	l, err := s.Lease(t.Context(), root, service.LeaseOptions{Queues: []string{"q"}})
	if err != nil {
		t.Fatal(err)
	}
	if text := page(); strings.Contains(text, `id="log"`) || !strings.Contains(text, jobs[0].ID) {
		t.Errorf("a job without a log: %s", text)
	}
	before := c.live.fingerprint()
	if _, err := s.AppendLog(t.Context(), root, l.Token, []string{"row <1>", "row 2"}); err != nil {
		t.Fatal(err)
	}
	if c.live.fingerprint() == before {
		t.Error("tabs are not told of new lines")
	}
	if text := page(); !strings.Contains(text, `id="log"`) || !strings.Contains(text, "row &lt;1&gt;\n") ||
		!strings.Contains(text, "row 2") {
		t.Errorf("page: %s", text)
	}
	for range 2 {
		if _, err := s.AppendLog(t.Context(), root, l.Token, make([]string, core.MaxLogLines)); err != nil {
			t.Fatal(err)
		}
	}
	if text := page(); !strings.Contains(text, "lines are missing …</em>") {
		t.Errorf("a long log: %s", text)
	}
}
