package integration_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"broker/integration/harness"
)

// curl sends a request as a person would, and returns the status, the content type and the answer.
func curl(t *testing.T, b *harness.Broker, args ...string) (status, kind string, answer map[string]any) {
	t.Helper()
	last := len(args) - 1
	argv := append([]string{"curl", "-s", "-w", "\n%{http_code} %{content_type}"}, args[:last]...)
	out := harness.Run(t, harness.Command{Argv: append(argv, "http://"+b.HTTP+"/api/v1"+args[last])})
	at := strings.LastIndexByte(out, '\n')
	status, kind, _ = strings.Cut(out[at+1:], " ")
	if body := out[:at]; strings.HasPrefix(body, "{") {
		check(t, json.Unmarshal([]byte(body), &answer))
	}
	return status, kind, answer
}

// TestFixedShapesWithCurl goes through the requests whose shapes clients rely on.
func TestFixedShapesWithCurl(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	harness.Need(t, "curl")
	b := harness.Start(t, harness.Options{})
	ask := func(want string, args ...string) map[string]any {
		t.Helper()
		status, kind, answer := curl(t, b, args...)
		if status != want {
			t.Fatalf("%v: %s %v, want %s", args, status, answer, want)
		}
		if strings.HasPrefix(status, "4") && kind != "application/problem+json" {
			t.Errorf("%v: content type %s", args, kind)
		}
		return answer
	}
	equal(t, "version", fmt.Sprint(ask("200", "/openapi.json")["openapi"]), "3.1.0")

	job := ask("201", "-d",
		`{"queue": "mail", "type": "letter", "args": ["ann"], "priority": 3, "max_fails": 2, "tags": ["t"]}`, "/jobs")
	equal(t, "the job", fmt.Sprintln(job["state"], job["queue"], job["type"], job["priority"]), "ready mail letter 3\n")
	many := ask("201", "-d", `{"jobs": [{"queue": "mail", "body": "text"}, {"queue": "mail", "body_base64": "AAE="}]}`,
		"/jobs")
	equal(t, "many", len(many["jobs"].([]any)), 2)
	page := ask("200", "/jobs?queue=mail&state=ready&limit=2")
	equal(t, "first page", len(page["jobs"].([]any)), 2)
	page = ask("200", "/jobs?queue=mail&state=ready&limit=2&cursor="+page["cursor"].(string))
	equal(t, "last page", fmt.Sprint(len(page["jobs"].([]any)), page["cursor"]), "1 <nil>")

	leased := ask("200", "-X", "POST", "-d", "{}", "/queues/mail/lease?wait=2s")
	token := leased["lease"].(string)
	equal(t, "leased", leased["job"].(map[string]any)["id"], job["id"])
	ask("200", "-X", "POST", "/leases/"+token+"/heartbeat")
	ask("200", "-d", `{"percent": 50}`, "/leases/"+token+"/progress")
	ask("204", "-d", `{"error_class": "E", "message": "m", "retry_in_s": 3600}`, "/leases/"+token+"/fail")
	equal(t, "lost", ask("410", "-d", `{"result": "late"}`, "/leases/"+token+"/complete")["code"], any("lease_lost"))
	equal(t, "retrying", ask("200", "/jobs/"+job["id"].(string))["state"], any("retrying"))

	// A worker in shell and curl ends the job that a client waits for.
	worker := harness.Spawn(t, harness.Command{Argv: []string{"bash", "-c", `
		lease=$(curl -sf -X POST "$1/queues/run/lease?wait=60s")
		token=${lease#*'"lease":"'}; token=${token%%'"'*}
		curl -sf -d '{"result": "done by shell"}' "$1/leases/$token/complete" && echo finished`, "worker", "http://" + b.HTTP + "/api/v1"}})
	ran := ask("201", "-d", `{"queue": "run"}`, "/jobs?wait=60s")
	equal(t, "outcome", ran["outcome"].(map[string]any)["result"], any("done by shell"))
	_ = worker

	filter := `{"action": "delete", "filter": {"queue": "mail", "state": "ready"}`
	preview := ask("200", "-d", filter+`, "dry_run": true}`, "/job-actions")
	equal(t, "preview", fmt.Sprint(preview["matched"], len(preview["examples"].([]any))), "2 2")
	operation := ask("202", "-d", filter+"}", "/job-actions?wait=60s")
	equal(t, "operation", fmt.Sprint(operation["state"], operation["changed"]), "done2")
	equal(t, "paused", ask("200", "-X", "PATCH", "-d", `{"paused": true}`, "/queues/mail")["paused"], any(true))
	ask("204", "-X", "POST", "/queues/mail/lease")

	equal(t, "unknown job", ask("404", "/jobs/none")["code"], any("job_not_found"))
	equal(t, "unknown path", ask("404", "/nothing")["code"], any("route_not_found"))
	equal(t, "wrong method", ask("405", "-X", "PUT", "/jobs")["code"], any("method_not_allowed"))
	equal(t, "wrong type", ask("415", "-H", "Content-Type: text/xml", "-d", "<x/>", "/jobs")["code"],
		any("unsupported_media_type"))
	equal(t, "no JSON", ask("400", "-d", "{", "/jobs")["code"], any("invalid_json"))
	equal(t, "another site",
		ask("403", "-H", "Origin: http://elsewhere.example", "-d", `{"queue": "q"}`, "/jobs")["code"],
		any("cross_origin"))
	events := harness.Spawn(t,
		harness.Command{Argv: []string{"curl", "-sN", "http://" + b.HTTP + "/api/v1/events?queue=mail"}})
	begin := events.AwaitLines(1, func(string) bool { return true })
	equal(t, "the stream begins with", begin[0], ": events")
}
