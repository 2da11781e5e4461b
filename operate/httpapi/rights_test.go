package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"broker/access"
)

// principals makes principals whose tokens are their names.
func principals(t *testing.T, rights map[string][]string) *access.Control {
	t.Helper()
	c := &access.Control{}
	c.Load(entries(t, rights))
	return c
}

// entries are the settings of principals whose tokens are their names.
func entries(t *testing.T, rights map[string][]string) (entries []access.Entry) {
	t.Helper()
	for name, roles := range rights {
		e := access.Entry{Name: name, TokenSHA256: access.HashToken(name)}
		for _, r := range roles {
			g, err := access.ParseGrant(r)
			if err != nil {
				t.Fatal(err)
			}
			e.Grants = append(e.Grants, g)
		}
		entries = append(entries, e)
	}
	return entries
}

// as sends the token of a principal.
func as(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

func TestNumbersOfTheBrokerNeedARole(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{
		Profiling: true, Cluster: &toyCluster{},
		Access: principals(t, map[string][]string{
			"reader": {"read"}, "mailer": {"read:mail"}, "producer": {"produce"}, "operator": {"operate"},
			"root": {"admin"},
		}),
	})
	b := *f.server.backend.Load()
	b.Parts = toyParts{info: "{}"}
	f.server.Ready(b)
	for path, allowed := range map[string]string{
		"/metrics": "reader operator root", "/api/v1/cluster": "reader operator root", "/stats": "reader operator root",
		"/debug/pprof/": "root", "/debug/pprof/trace?seconds=0.01": "root",
	} {
		for _, who := range []string{"reader", "mailer", "producer", "operator", "root"} {
			got := f.call("GET", path, nil, as(who)).status
			if may := contains(allowed, who); may == (got == http.StatusForbidden) {
				t.Errorf("%s as %s: %d", path, who, got)
			}
		}
	}
}

func contains(words, word string) bool {
	for w := range strings.FieldsSeq(words) {
		if w == word {
			return true
		}
	}
	return false
}

// A leader may step down and drop its broker during a scrape.
func TestScrapeSurvivesTheEndOfTheBroker(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.call("POST", "/api/v1/jobs", `{"queue":"q"}`).want(201)
	out := make(chan prometheus.Metric)
	go func() { // ends with the scrape, which this test reads to its end
		defer close(out)
		f.server.metrics.Collect(out)
	}()
	forgotten := false
	for m := range out {
		if m.Desc() == drainingDesc { // the counters were read, but the totals are not collected yet
			f.server.Unready()
			forgotten = true
		}
	}
	if !forgotten {
		t.Error("the scrape ended early")
	}
}

func TestLeaseThatWaitsEndsWithTheRightToIt(t *testing.T) {
	t.Parallel()
	for path, body := range map[string]string{
		"/queues/q/lease?wait=1m": "{}", "/lease?queue=q&wait=1m": "{}",
		"/leases": `{"queues":["q"],"max":2,"min":1,"wait_s":60}`,
	} {
		control := principals(t, map[string][]string{"worker": {"consume"}, "root": {"admin"}})
		f := setupAPI(t, Options{Access: control})
		got := make(chan answer, 1)
		go func() { got <- f.call("POST", "/api/v1"+path, body, as("worker")) }()
		f.parked()
		control.Load(entries(t, map[string][]string{"worker": {"consume:other"}, "root": {"admin"}}))
		id := f.call("POST", "/api/v1/jobs", `{"queue":"q"}`, as("root")).want(201)["id"].(string)
		a := <-got
		a.problem(403, "forbidden")
		if job := f.call("GET", "/api/v1/jobs/"+id, nil, as("root")).want(200); job["state"] != "ready" ||
			job["attempts"] != 0.0 {
			t.Errorf("%s: the job is %v", path, job)
		}
	}
}

// To commit, reopen or fill a batch decides when its callbacks run, so it needs rights for their queues.
func TestBatchesBelongToTheirCreator(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{Access: principals(t, map[string][]string{
		"shop": {"produce:shop.*"}, "mail": {"produce:mail.*"}, "viewer": {"read:mail.*"},
		"both": {"produce:mail.*,shop.*"}, "root": {"admin"},
	})})
	id := f.call("POST", "/api/v1/batches", `{"success":{"queue":"mail.done"}}`, as("mail")).want(201)["id"].(string)
	bare := f.call("POST", "/api/v1/batches", `{}`, as("mail")).want(201)["id"].(string)
	for _, batch := range []string{id, bare} {
		path := "/api/v1/batches/" + batch
		f.call("GET", path, nil, as("shop")).problem(403, "forbidden")
		f.call("POST", path+"/commit", nil, as("shop")).problem(403, "forbidden")
		f.call("POST", path+"/reopen", nil, as("shop")).problem(403, "forbidden")
		f.call("POST", "/api/v1/jobs", `{"queue":"shop.a","batch":"`+batch+`"}`, as("shop")).problem(403, "forbidden")
		f.call("POST", "/api/v1/batches", `{"parent":"`+batch+`"}`, as("shop")).problem(403, "forbidden")
	}
	f.call("GET", "/api/v1/batches/"+id, nil, as("viewer")).want(200)
	f.call("GET", "/api/v1/batches/"+bare, nil, as("viewer")).problem(403, "forbidden")
	f.call("GET", "/api/v1/batches/"+id, nil, as("both")).want(200)
	f.call("POST", "/api/v1/batches/"+bare+"/commit", nil, as("both")).problem(403, "forbidden")
	child := f.call("POST", "/api/v1/batches", `{"parent":"`+id+`"}`, as("both")).want(201)["id"].(string)
	f.call("POST", "/api/v1/batches/"+child+"/commit", nil, as("shop")).problem(403, "forbidden")
	f.call("POST", "/api/v1/batches/"+child+"/commit", nil, as("mail")).want(200)
	f.call("POST", "/api/v1/batches/"+bare+"/commit", nil, as("mail")).want(200)
	f.call("POST", "/api/v1/batches/"+id+"/commit", nil, as("both")).want(200)
	f.call("POST", "/api/v1/batches/"+id+"/reopen", nil, as("root")).want(200)
}

func TestJobsWaitOnlyForJobsOfQueuesWithRights(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{Access: principals(t, map[string][]string{
		"shop": {"produce:shop.*"}, "both": {"produce:mail.*,shop.*"}, "root": {"admin"},
	})})
	other := f.call("POST", "/api/v1/jobs", `{"queue":"mail.a"}`, as("root")).want(201)["id"].(string)
	own := f.call("POST", "/api/v1/jobs", `{"queue":"shop.a"}`, as("shop")).want(201)["id"].(string)
	for _, link := range []string{
		`"after":["` + other + `"]`, `"after":["` + own + `","` + other + `"]`, `"parent":"` + other + `"`,
	} {
		f.call("POST", "/api/v1/jobs", `{"queue":"shop.b",`+link+`}`, as("shop")).problem(422, "invalid_request")
		f.call("POST", "/api/v1/jobs", `{"queue":"shop.b",`+link+`}`, as("both")).want(201)
	}
	f.call("POST", "/api/v1/jobs", `{"queue":"shop.b","after":["`+own+`"]}`, as("shop")).want(201)
}

// The answers about a job that a client may not see are those about a job that does not exist. The timeline of a moved
// job names only the queues that the client may read.
func TestAnswersDoNotTellWhetherAForeignJobExists(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{Access: principals(t, map[string][]string{
		"shop": {"produce:shop.*", "consume:shop.*", "operate:shop.*"}, "root": {"admin"},
		"reader": {"read:shop.*"}, "worker": {"consume:shop.*"},
	})})
	f.call("POST", "/api/v1/jobs", `{"queue":"secret.orders","id":"there"}`, as("root")).want(201)
	f.call("PUT", "/api/v1/schedules/there", `{"cron":"* * * * *","job":{"queue":"secret.orders"}}`, as("root")).want(200)
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/api/v1/schedules/JOB", ""},
		{"DELETE", "/api/v1/schedules/JOB", ""},
		{"POST", "/api/v1/schedules/JOB/run", ""},
		{"GET", "/api/v1/jobs/JOB", ""},
		{"GET", "/api/v1/jobs/JOB/body", ""},
		{"DELETE", "/api/v1/jobs/JOB", ""},
		{"PATCH", "/api/v1/jobs/JOB", `{"priority":1}`},
		{"GET", "/api/v1/workflows/JOB", ""},
		{"POST", "/api/v1/jobs", `{"queue":"shop.a","after":["JOB"]}`},
	} {
		for _, name := range []string{"shop", "reader", "worker"} {
			ask := func(id string) answer {
				var body any
				if c.body != "" {
					body = strings.ReplaceAll(c.body, "JOB", id)
				}
				return f.call(c.method, strings.ReplaceAll(c.path, "JOB", id), body, as(name))
			}
			there, never := ask("there"), ask("never")
			want := strings.ReplaceAll(string(never.text), "never", "there")
			if string(there.text) != want || there.status != never.status {
				t.Errorf("%s: %s %s: %d %s, want %d %s",
					name, c.method, c.path, there.status, there.text, never.status, want)
			}
		}
	}
	f.call("PATCH", "/api/v1/jobs/there", `{"queue":"shop.a"}`, as("root")).want(200)
	f.call("PATCH", "/api/v1/jobs/there", `{"queue":"shop.b"}`, as("root")).want(200)
	shown := f.call("GET", "/api/v1/jobs/there", nil, as("shop")).want(200)
	if text := fmt.Sprint(shown["timeline"]); strings.Contains(text, "secret") || !strings.Contains(text, "shop.b") {
		t.Errorf("the timeline is %s", text)
	}
	all := f.call("GET", "/api/v1/jobs/there", nil, as("root")).want(200)
	if text := fmt.Sprint(all["timeline"]); !strings.Contains(text, "secret.orders") {
		t.Errorf("for an administrator the timeline is %s", text)
	}
}

// A client that knows the password is an administrator, and no other client has its name.
func TestClientsWithThePasswordHaveAReservedName(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{
		Password: "pw",
		Access:   principals(t, map[string][]string{"anonymous": {"operate", "produce"}, "root": {"admin"}}),
	})
	f.call("POST", "/api/v1/jobs", `{"queue":"q"}`, as("pw")).want(201)
	f.call("PATCH", "/api/v1/queues/q", `{"paused":true}`, as("pw")).want(200)
	audit := f.call("GET", "/api/v1/audit", nil, as("root")).want(200)
	if who := audit["entries"].([]any)[0].(map[string]any)["who"]; who != "http.password" {
		t.Errorf("the audit log has %v", who)
	}
	submit := func(who, body string) answer {
		return f.call("POST", "/api/v1/jobs", body, as(who),
			func(r *http.Request) { r.Header.Set("Idempotency-Key", "k") })
	}
	submit("pw", `{"queue":"q"}`).want(201)
	submit("root", `{"queue":"other"}`).want(201)
}

func TestReservedNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"anonymous": true, "http.password": true, "faktory.password": true, "": true, "shop": false,
		"shop.password": false, "password": false,
	} {
		if access.IsReserved(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

// A count reveals as much as a search, so it needs the same rights.
func TestCountsCoverReadableQueuesOnly(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{Access: principals(t, map[string][]string{
		"a": {"read:a"}, "some": {"read:a,*.x", "operate:pre*"}, "none": {"produce"}, "root": {"admin"},
	})})
	for _, queue := range []string{"a", "secret", "secret.x", "prefix", "pre"} {
		f.call("POST", "/api/v1/jobs", `{"queue":"`+queue+`","body":"the word X","tags":["t"]}`, as("root")).want(201)
	}
	for _, c := range []struct {
		who, query string
		want       float64
	}{
		{"a", "", 1},
		{"a", "queue_prefix=secret", 0},
		{"a", "queue_prefix=secret&body_text=X", 0},
		{"a", "body_text=X", 1},
		{"a", "tag=t", 1},
		{"a", "state=ready", 1},
		{"a", "queue=a&queue_prefix=a", 1},
		{"a", "text=t", 1},
		{"some", "", 4},
		{"some", "queue_prefix=secret", 1},
		{"some", "queue_prefix=pre", 2},
		{"some", "queue_prefix=prefi", 1},
		{"some", "tag=t", 4},
		{"some", "body_text=X", 4},
		{"none", "", 0},
		{"none", "body_text=X", 0},
		{"root", "queue_prefix=secret", 2},
	} {
		got := f.call("GET", "/api/v1/jobs?count=true&"+c.query, nil, as(c.who)).want(200)
		if jobs := got["jobs"].([]any); got["count"] != c.want || got["count_exact"] != true ||
			float64(len(jobs)) != c.want {
			t.Errorf("%s, %q: count %v, exact %v, %d jobs, want %v", c.who, c.query, got["count"], got["count_exact"],
				len(jobs), c.want)
		}
	}
	f.call("GET", "/api/v1/jobs?count=true&queue=secret", nil, as("a")).problem(403, "forbidden")
}
