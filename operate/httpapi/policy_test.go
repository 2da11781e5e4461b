package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

// wantPolicy compares the policy that a path shows; "" is none.
func (f *apiFixture) wantPolicy(path, want string) {
	f.t.Helper()
	var expected any
	if want != "" {
		if err := json.Unmarshal([]byte(want), &expected); err != nil {
			f.t.Fatal(err)
		}
	}
	if got := f.call("GET", path, nil).want(200)["policy"]; !reflect.DeepEqual(got, expected) {
		f.t.Errorf("%s: policy %v, want %s", path, got, want)
	}
}

func TestPoliciesAreSetShownAndRemoved(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/api/v1/queues/q", "/api/v1/types/T%2Fx"} {
		t.Run(path[8:13], func(t *testing.T) {
			t.Parallel()
			f := setupAPI(t, Options{})
			for _, step := range []struct{ change, shown string }{
				{`{"max_fails":3,"lease_for_s":1.5}`, `{"max_fails":3,"lease_for_s":1.5}`},
				{
					`{"max_attempts":4,"expires_in_s":60,"retain_for_s":3600,"max_fails":null}`,
					`{"max_attempts":4,"lease_for_s":1.5,"expires_in_s":60,"retain_for_s":3600}`,
				},
				{
					`{"max_attempts":null,"lease_for_s":null,"expires_in_s":null,"retain_for_s":null,"backoff":[1,2.5]}`,
					`{"backoff":[1,2.5]}`,
				},
				{
					`{"backoff":{"kind":"exponential","base_s":2,"max_s":600,"jitter":0.5},"on_exhausted":{"move":"other"}}`,
					`{"backoff":{"kind":"exponential","base_s":2,"max_s":600,"jitter":0.5},"on_exhausted":{"move":"other"}}`,
				},
				{
					`{"backoff":{"kind":"linear","base_s":2},"on_exhausted":"drop"}`,
					`{"backoff":{"kind":"linear","base_s":2},"on_exhausted":"drop"}`,
				},
				{
					`{"backoff":{"kind":"constant","base_s":0},"on_exhausted":"dead"}`,
					`{"backoff":{"kind":"constant","base_s":0},"on_exhausted":"dead"}`,
				},
				{`{"max_fails":0}`, `{"max_fails":0,"backoff":{"kind":"constant","base_s":0},"on_exhausted":"dead"}`},
				{`{}`, `{"max_fails":0,"backoff":{"kind":"constant","base_s":0},"on_exhausted":"dead"}`},
			} {
				f.call("PATCH", path, `{"policy":`+step.change+`}`).want(200)
				f.wantPolicy(path, step.shown)
			}
			if after := f.call("PATCH", path,
				`{"policy":{"backoff":null,"on_exhausted":null,"max_fails":null}}`).want(200); after["policy"] != nil {
				t.Errorf("after the last member: %v", after)
			}
		})
	}
}

func TestAQueueNeedNotExistForAPolicy(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	const path = "/api/v1/queues/q"
	f.call("GET", path, nil).problem(404, "queue_not_found")
	f.call("PATCH", path, `{"policy":{"max_fails":3},"paused":true}`).problem(404, "queue_not_found")
	f.call("GET", path, nil).problem(404, "queue_not_found")
	if q := f.call("PATCH", path, `{"policy":{"max_fails":3}}`).want(200); q["name"] != "q" || q["policy"] == nil {
		t.Errorf("%v", q)
	}
	f.call("POST", path+"/clear", `{"states":["dead"]}`).problem(404, "queue_not_found")
	f.push(map[string]any{"queue": "q"})
	f.wantPolicy(path, `{"max_fails":3}`)
}

func TestWrongPoliciesAreRefusedWithTheMember(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	for _, path := range []string{"/api/v1/queues/q", "/api/v1/types/t"} {
		for wrong, field := range map[string]string{
			`null`: "body.policy", `[]`: "body.policy", `3`: "body.policy",
			`{"max_fails":-1}`: "body.policy.max_fails", `{"max_fails":"3"}`: "body.policy.max_fails",
			`{"max_fails":1.5}`:           "body.policy.max_fails",
			`{"max_attempts":4294967296}`: "body.policy.max_attempts", `{"lease_for_s":0}`: "body.policy.lease_for_s",
			`{"expires_in_s":-1}`: "body.policy.expires_in_s", `{"retain_for_s":1e12}`: "body.policy.retain_for_s",
			`{"backoff":[]}`: "body.policy.backoff", `{"backoff":[1,-1]}`: "body.policy.backoff[1]",
			`{"backoff":5}`: "body.policy.backoff",
			`{"backoff":[` + strings.Repeat("1,", 100) + `1]}`:             "body.policy.backoff",
			`{"backoff":{"kind":"cubic"}}`:                                 "body.policy.backoff",
			`{"backoff":{"kind":"linear","base":1}}`:                       "body.policy.backoff",
			`{"backoff":{"kind":"linear","base_s":1,"jitter":2}}`:          "body.policy.backoff",
			`{"backoff":{"kind":"linear","base_s":-1}}`:                    "body.policy.backoff.base_s",
			`{"on_exhausted":"retry"}`:                                     "body.policy.on_exhausted",
			`{"on_exhausted":{}}`:                                          "body.policy.on_exhausted",
			`{"on_exhausted":{"move":""}}`:                                 "body.policy.on_exhausted",
			`{"on_exhausted":{"move":"x","to":"y"}}`:                       "body.policy.on_exhausted",
			`{"on_exhausted":{"move":"` + strings.Repeat("x", 600) + `"}}`: "body.policy.on_exhausted",
			`{"durability":"sync"}`:                                        "body.policy.durability",
			`{"durability":7}`:                                             "body.policy.durability",
			`{"colour":"red"}`:                                             "body.policy.colour",
			`{"from_config":true}`:                                         "body.policy.from_config",
		} {
			p := f.call("PATCH", path, `{"policy":`+wrong+`}`).problem(422, "invalid_request")
			if errors, _ := p["errors"].([]any); len(errors) != 1 || errors[0].(map[string]any)["location"] != field {
				t.Errorf("%s: %v, want %s", wrong, p, field)
			}
		}
	}
	p := f.call("PATCH", "/api/v1/queues/q", `{"policy":{"on_exhausted":{"move":"q"}}}`).problem(422, "invalid_request")
	if !strings.Contains(p["detail"].(string), "another queue") {
		t.Errorf("%v", p)
	}
	f.call("GET", "/api/v1/queues/q", nil).problem(404, "queue_not_found")
	f.wantPolicy("/api/v1/types/t", "")
}

// After the last lost lease or the last failure, a job moves as the policy of its queue or type says.
func TestJobsMoveToTheDeadLetterQueue(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/api/v1/queues/q", "/api/v1/types/T"} {
		for member, end := range map[string]func(f *apiFixture, token string){
			"max_attempts": func(f *apiFixture, _ string) {
				f.advance(11 * time.Second)
				f.advance(time.Second)
			},
			"max_fails": func(f *apiFixture, token string) {
				f.call("POST", "/api/v1/leases/"+token+"/fail", `{"error_class":"E"}`).want(204)
				f.advance(time.Second)
			},
		} {
			t.Run(path[8:13]+" "+member, func(t *testing.T) {
				t.Parallel()
				f := setupAPI(t, Options{})
				f.call("PATCH", path, `{"policy":{"`+member+`":3,"lease_for_s":10,"backoff":[1],"on_exhausted":{"move":"dlq"}}}`).want(200)
				id := f.push(map[string]any{"queue": "q", "type": "T"})["id"].(string)
				for n := range 3 {
					if j := f.call("GET", "/api/v1/jobs/"+id, nil).want(200); j["queue"] != "q" ||
						j["state"] != "ready" {
						t.Fatalf("before lease %d: %v", n+1, j)
					}
					token, _ := f.leaseOne()
					end(f, token)
				}
				if j := f.call("GET", "/api/v1/jobs/"+id, nil).want(200); j["queue"] != "dlq" || j["state"] != "ready" {
					t.Errorf("after the last: %v", j)
				}
			})
		}
	}
}

func TestFieldsOfAJobOverrideItsPolicy(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.call("PATCH", "/api/v1/queues/q", `{"policy":{"max_fails":1,"on_exhausted":"drop"}}`).want(200)
	own := f.push(map[string]any{"queue": "q", "max_fails": 2})
	token, _ := f.leaseOne()
	f.call("POST", "/api/v1/leases/"+token+"/fail", nil).want(204)
	if s := f.state(own["id"]); s != "retrying" {
		t.Errorf("state %v, want retrying", s)
	}
}

func TestPoliciesNeedRights(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{Access: principals(t,
		map[string][]string{"all": {"operate", "read"}, "mine": {"operate:q", "read:q"}})})
	const change, move = `{"policy":{"max_fails":3}}`, `{"policy":{"on_exhausted":{"move":"r"}}}`
	for _, ask := range []struct {
		who, path, body string
		want            int
	}{
		{"mine", "/queues/q", change, http.StatusOK},
		{"mine", "/queues/r", change, http.StatusForbidden},
		{"mine", "/queues/q", move, http.StatusForbidden}, // into a queue that is not its own
		{"mine", "/types/t", change, http.StatusForbidden},
		{"all", "/queues/q", move, http.StatusOK},
		{"all", "/types/t", move, http.StatusOK},
	} {
		if a := f.call("PATCH", apiPath+ask.path, ask.body, as(ask.who)); a.status != ask.want {
			t.Errorf("%s %s %s: %d %s, want %d", ask.who, ask.path, ask.body, a.status, a.text, ask.want)
		}
	}
	f.call("GET", "/api/v1/types/t", nil, as("mine")).problem(403, "forbidden")
}

func TestPoliciesAreListed(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.call("PATCH", "/api/v1/types/T", `{"policy":{"max_fails":3}}`).want(200)
	f.call("PATCH", "/api/v1/queues/b", `{"policy":{"max_fails":2}}`).want(200)
	f.call("PATCH", "/api/v1/queues/a", `{"policy":{"max_fails":1}}`).want(200)
	var got []string
	for _, p := range f.call("GET", "/api/v1/policies", nil).want(200)["policies"].([]any) {
		p := p.(map[string]any)
		got = append(got, fmt.Sprint(p["scope"], " ", p["name"], " ", p["policy"]))
	}
	if want := "queue a map[max_fails:1] queue b map[max_fails:2] type T map[max_fails:3]"; strings.Join(got,
		" ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestJobsOfAQueueWithoutDurabilitySaySo(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.call("PATCH", "/api/v1/queues/q", `{"policy":{"durability":"none"}}`).want(200)
	f.wantPolicy("/api/v1/queues/q", `{"durability":"none"}`)
	id := f.push(map[string]any{"queue": "q"})["id"].(string)
	if job := f.call("GET", "/api/v1/jobs/"+id, nil).want(200); job["durability"] != "none" {
		t.Errorf("%v", job)
	}
	f.call("PATCH", "/api/v1/queues/q", `{"policy":{"durability":null}}`).want(200)
	id = f.push(map[string]any{"queue": "q"})["id"].(string)
	if job := f.call("GET", "/api/v1/jobs/"+id, nil).want(200); job["durability"] != nil {
		t.Errorf("%v", job)
	}
}

func TestExplicitZeroOverridesThePolicy(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.call("PATCH", "/api/v1/queues/q",
		`{"policy":{"max_attempts":3,"lease_for_s":5,"expires_in_s":60,"retain_for_s":3600}}`).want(200)
	for id, c := range map[string]struct {
		members string
		lease   time.Duration
		limited bool
		kept    int
	}{
		"zero":   {`"expires_in_s":0,"retain_for_s":0,"lease_for_s":0,"max_attempts":0,`, 30 * time.Minute, false, 404},
		"absent": {``, 5 * time.Second, true, 200},
	} {
		f.call("POST", "/api/v1/jobs", `{`+c.members+`"queue":"q","id":"`+id+`"}`).want(201)
		tokens, _ := f.leaseMany(`{"queues":["q"]}`)
		j := f.call("GET", "/api/v1/jobs/"+id, nil).want(200)
		until, _ := time.Parse(time.RFC3339Nano, j["lease_until"].(string))
		since, _ := time.Parse(time.RFC3339Nano, j["leased_at"].(string))
		if until.Sub(since) != c.lease || (j["expires_at"] != nil) != c.limited {
			t.Errorf("%s: leased for %v, expires at %v", id, until.Sub(since), j["expires_at"])
		}
		f.call("POST", "/api/v1/leases/"+tokens[0]+"/complete", nil).want(204)
		f.call("GET", "/api/v1/jobs/"+id, nil).want(c.kept)
	}
}
