package httpapi

import (
	"bytes"
	"fmt"
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

func TestQueuesAreListedChangedAndCleared(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for i, name := range []string{"a", "b", "b", "mail/out", "mail/in", "\xff"} {
		f.engine.Do(f.client,
			[]core.Op{&core.Submit{Job: &core.Job{Queue: name, Origin: core.Gearman, Priority: int64(i)}}}, nil)
	}
	names := func(query string) (all []string) {
		for cursor, more := "", true; more; {
			page := f.call("GET", "/api/v1/queues?limit=2&"+query+"&cursor="+cursor, nil).want(200)
			for _, q := range page["queues"].([]any) {
				all = append(all, q.(map[string]any)["name"].(string))
			}
			cursor, more = page["cursor"].(string)
		}
		return all
	}
	for query, want := range map[string]string{
		"":                         "[a b mail/in mail/out \ufffd]",
		"sort=-name":               "[\ufffd mail/out mail/in b a]",
		"sort=-ready":              "[b a mail/in mail/out \ufffd]",
		"prefix=mail":              "[mail/in mail/out]",
		"search=in":                "[mail/in]",
		"search=in&sort=-ready":    "[mail/in]",
		"search=nothing&sort=dead": "[]",
	} {
		if got := fmt.Sprint(names(query)); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	f.call("GET", "/api/v1/queues?sort=size", nil).problem(422, "invalid_request")
	f.call("GET", "/api/v1/queues?limit=0", nil).problem(422, "invalid_request")
	f.call("GET", "/api/v1/queues?cursor=x", nil).problem(422, "invalid_request")
	f.call("GET", "/api/v1/queues/nothing", nil).problem(404, "queue_not_found")
	for _, path := range []string{"mail%2Fout", "%ff"} {
		q := f.call("PATCH", "/api/v1/queues/"+path, `{"paused":true}`).want(200)
		if q["paused"] != true {
			t.Errorf("%s: %v", path, q)
		}
		f.call("POST", "/api/v1/queues/"+path+"/lease", nil).want(204)
		f.call("PATCH", "/api/v1/queues/"+path, `{"paused":false,"max":{"high":1,"normal":1,"low":1}}`).want(200)
	}
	f.call("POST", "/api/v1/jobs", `{"queue":"mail/out"}`).problem(429, "queue_full")
	if got := f.call("POST", "/api/v1/queues/b/clear", `{"states":["ready","dead"]}`).want(200); got["removed"] != 2.0 {
		t.Errorf("cleared %v", got)
	}
	if got := f.call("DELETE", "/api/v1/queues/mail%2Fout", nil).want(200); got["removed"] != 1.0 {
		t.Errorf("removed %v", got)
	}
	audit := string(f.call("GET", "/api/v1/audit", nil).text)
	for _, action := range []string{"queue.pause", "queue.resume", "queue.limit", "queue.clear", "queue.remove"} {
		if !strings.Contains(audit, `"action":"`+action+`"`) {
			t.Errorf("%s is not in the audit log: %s", action, audit)
		}
	}
}

func TestPrincipalsDoWhatTheirRolesAllow(t *testing.T) {
	t.Parallel()
	control := &access.Control{}
	entry := func(name string, roles ...string) access.Entry {
		e := access.Entry{Name: name, TokenSHA256: access.HashToken(name)}
		for _, r := range roles {
			g, err := access.ParseGrant(r)
			if err != nil {
				t.Fatal(err)
			}
			e.Grants = append(e.Grants, g)
		}
		return e
	}
	control.Load([]access.Entry{
		entry("shop", "produce:mail.*"), entry("mailer", "consume:mail.*"), entry("viewer", "read:mail.*"),
		entry("operator", "operate"), entry("root", "admin"),
	})
	f := setupAPI(t, Options{Access: control})
	as := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	f.call("GET", "/api/v1/queues", nil).problem(401, "unauthorized")
	f.call("GET", "/api/v1/queues", nil, as("wrong")).problem(401, "unauthorized")
	f.call("GET", "/api/v1/queues", nil, func(r *http.Request) { r.Header.Set("Authorization", "root") }).problem(401,
		"unauthorized")
	f.call("GET", "/api/v1/queues", nil, func(r *http.Request) { r.SetBasicAuth("any", "root") }).want(200)

	job := f.call("POST", "/api/v1/jobs", `{"queue":"mail.out"}`, as("shop")).want(201)
	path := "/api/v1/jobs/" + job["id"].(string)
	f.call("POST", "/api/v1/jobs", `{"queue":"sms"}`, as("shop")).problem(403, "forbidden")
	f.call("POST", "/api/v1/jobs", `{"jobs":[{"queue":"mail.out"},{"queue":"sms"}]}`, as("shop")).problem(403,
		"forbidden")
	f.call("POST", "/api/v1/jobs", `{"queue":"mail.out"}`, as("viewer")).problem(403, "forbidden")
	f.call("POST", "/api/v1/jobs", `{"queue":"sms"}`, as("root")).want(201)
	f.call("GET", path, nil, as("viewer")).want(200)
	f.call("GET", path, nil, as("mailer")).problem(403, "forbidden")
	f.call("DELETE", path, nil, as("viewer")).problem(403, "forbidden")
	f.call("PATCH", "/api/v1/queues/mail.out", `{"paused":true}`, as("viewer")).problem(403, "forbidden")
	f.call("PATCH", "/api/v1/queues/mail.out", `{"paused":false}`, as("operator")).want(200)
	f.call("GET", "/api/v1/audit", nil, as("operator")).problem(403, "forbidden")
	f.call("POST", "/api/v1/queues/sms/lease", nil, as("mailer")).problem(403, "forbidden")
	token := f.call("POST", "/api/v1/queues/mail.out/lease", nil, as("mailer")).want(200)["lease"].(string)
	f.call("POST", "/api/v1/leases/"+token+"/complete", nil, as("shop")).problem(403, "forbidden")
	f.call("POST", "/api/v1/leases/"+token+"/complete", nil, as("mailer")).want(204)

	for _, list := range []string{"jobs", "queues"} {
		text := string(f.call("GET", "/api/v1/"+list, nil, as("viewer")).text)
		if strings.Contains(text, "sms") {
			t.Errorf("%s shows what viewer may not read: %s", list, text)
		}
	}
	if audit := f.call("GET", "/api/v1/audit", nil,
		as("root")).text; !bytes.Contains(audit, []byte(`"who":"operator"`)) {
		t.Errorf("audit %s", audit)
	}
}

func TestFailedLoginsAreSlowedDown(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{Password: "right"})
	login := func(password string) answer {
		return f.call("GET", "/api/v1/queues", nil, func(r *http.Request) { r.SetBasicAuth("", password) })
	}
	for range access.LoginBurst {
		login("wrong").problem(401, "unauthorized")
	}
	a := login("wrong")
	a.problem(429, "too_many_failed_logins")
	if a.header.Get("Retry-After") != "4" {
		t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
	}
	login("right").want(200)
	login("wrong").problem(429, "too_many_failed_logins")
	f.clock.Advance(4 * time.Second)
	login("wrong").problem(401, "unauthorized")
	login("wrong").problem(429, "too_many_failed_logins")
}

// Wrong secrets for one name are slowed down from all addresses, whether or not a principal has the name. The right one
// still passes.
func TestFailedLoginsOfOneNameAreSlowedDown(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"shop", "nobody-has-this-name"} {
		f := setupAPI(t, Options{Access: principals(t, map[string][]string{"shop": {"read"}})})
		handler := f.server.HTTP().Handler
		status := func(i int, secret string) int {
			r := httptest.NewRequest(http.MethodGet, "/api/v1/queues", nil)
			r.RemoteAddr = fmt.Sprintf("192.0.2.%d:5", i)
			r.SetBasicAuth(name, secret)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			return w.Code
		}
		for i := range 200 {
			want := http.StatusUnauthorized
			if i >= access.LoginBurst {
				want = http.StatusTooManyRequests
			}
			if got := status(i, "wrong"); got != want {
				t.Fatalf("%s, wrong secret %d: %d, want %d", name, i, got, want)
			}
		}
		if got := status(201, "shop"); got != http.StatusOK {
			t.Errorf("%s: the right secret gets %d", name, got)
		}
	}
}

// Audit entries, lease tokens and jobs survive a restart.
func TestARestartKeepsTokensAndAudit(t *testing.T) {
	t.Parallel()
	fs, clk := coretest.MemoryFS(), coretest.NewClock()
	open := func() (*engine.Engine, *service.Service) {
		e, err := engine.Open(engine.Options{Dir: "data", FS: fs, Clock: clk, ManualTimers: true})
		if err != nil {
			t.Fatal(err)
		}
		s, err := service.New(service.Options{Broker: e})
		if err != nil {
			t.Fatal(err)
		}
		return e, s
	}
	caller := service.Caller{Principal: access.Everyone, Address: "192.0.2.1:7"}
	e, s := open()
	if _, err := s.Submit(t.Context(), caller, []service.Submission{{Queue: "q"}, {Queue: "r"}},
		service.SubmitOptions{}); err != nil {
		t.Fatal(err)
	}
	paused := true
	if _, err := s.ChangeQueue(t.Context(), caller, "r", service.QueueChange{Paused: &paused}); err != nil {
		t.Fatal(err)
	}
	l, err := s.Lease(t.Context(), caller, service.LeaseOptions{Queues: []string{"q"}})
	if err != nil || l == nil {
		t.Fatal(l, err)
	}
	if err := e.Shutdown(); err != nil {
		t.Fatal(err)
	}
	e, s = open()
	if _, err := s.Heartbeat(t.Context(), caller, l.Token, 0); err != nil {
		t.Errorf("heartbeat: %v", err)
	}
	entries, err := s.Audit(caller, 0, 10)
	if err != nil || len(entries) != 1 || entries[0].Action != "queue.pause" || entries[0].Address != "192.0.2.1:7" {
		t.Errorf("audit %v, %v", entries, err)
	}
	if err := e.Shutdown(); err != nil {
		t.Fatal(err)
	}
}

// TestRequestsWaitForTheStart: a client that connects while the store opens waits and is then served.
func TestRequestsWaitForTheStart(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.server.startTimeout = time.Minute
	backend := f.server.backend.Load()
	f.server.Unready()
	time.AfterFunc(50*time.Millisecond, func() { f.server.Ready(*backend) })
	if a := f.call("POST", "/api/v1/jobs", `{"queue":"q"}`); a.status != http.StatusCreated {
		t.Errorf("%d %s", a.status, a.text)
	}

	f.server.Unready()
	f.server.Stopping() // and the start never completes
	if a := f.call("GET", "/api/v1/jobs", nil); a.status != http.StatusServiceUnavailable ||
		!strings.Contains(string(a.text), `"starting"`) {
		t.Errorf("%d %s", a.status, a.text)
	}
}
