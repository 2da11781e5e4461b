package console

import (
	"encoding/json"
	"fmt"
	"net/url"
	"testing"
	"time"

	"broker/core/schema"
	"broker/operate/service"
)

// TestQueueShowsItsTenants has one tenant with many jobs and one with few. The page of the queue, and the form that
// throttles a tenant, say what the test knows.
func TestQueueShowsItsTenants(t *testing.T) {
	t.Parallel()
	f := setup(t)
	push := func(tenant string, n int) {
		for range n {
			f.submits(service.Submission{Queue: "mail", Tags: []string{"tenant:" + tenant}})
		}
	}
	push("acme", 40)
	sharing := service.Sharing{Mode: service.SharingFair, KeyTag: "tenant"}
	if err := f.service.ShareQueue(t.Context(), f.caller, "mail", sharing); err != nil {
		t.Fatal(err)
	}
	f.advance(90 * time.Second)
	push("bolt", 3)
	for range 6 {
		if _, err := f.service.Lease(t.Context(), f.caller,
			service.LeaseOptions{Queues: []string{"mail"}, Worker: "w"}); err != nil {
			t.Fatal(err)
		}
	}
	f.advance(30 * time.Second)
	row := func(tenant, ready, running, rate, oldest string) string {
		return fmt.Sprintf(`href="jobs?queue=mail&amp;tag=tenant%%3a%s">%s</a></td>`+
			`<td class="num" data-label="Ready">%s</td><td class="num" data-label="Running">%s</td>`+
			`<td class="num" data-label="Starts">%s</td><td class="num" data-label="Oldest">%s</td>`,
			tenant, tenant, ready, running, rate, oldest)
	}
	zero, none := `<span class="zero">0</span>`, `<span class="zero">–</span>`
	f.wants(f.get("/queues/mail"),
		row("acme", "37", "3", "0.05/s", "2 min 00 s"), row("bolt", zero, "3", "0.05/s", none),
		`href="limits?queue=mail&amp;scope=key&amp;name=acme#edit" aria-label="Throttle acme"`)

	form := url.Values{"queue": {"mail"}, "scope": {"key"}, "name": {"acme"}}
	f.wants(f.get("/limits?"+form.Encode()), "3 running and 37 ready now.")
	preview := func(field, value, want string) {
		t.Helper()
		with := url.Values{field: {value}}
		for name, values := range form {
			with[name] = values
		}
		var lines []string
		if err := json.Unmarshal([]byte(f.get("/complete?preview=limit&"+with.Encode())), &lines); err != nil ||
			len(lines) != 1 || lines[0] != want {
			t.Errorf("%s %s: %q, %v", field, value, lines, err)
		}
		with.Set("do", "preview")
		if want != "" {
			f.wants(f.post("/limits", with), "<li>"+want+"</li>", `value="`+value+`"`)
		}
	}
	preview("concurrency", "2", "3 running and 37 ready now. Running jobs go on. The next one starts when 2 jobs have "+
		"ended; until then 37 ready jobs would wait.")
	preview("concurrency", "10",
		"3 running and 37 ready now. Running jobs go on. 7 jobs may start at once, and 30 would wait.")
	preview("concurrency", "50", "3 running and 37 ready now. Running jobs go on. No job would wait now.")
	preview("rate", "0.5", "3 running and 37 ready now. Running jobs go on. 1 job may start at once, and 36 would wait. "+
		"At this rate the ready ones take at least 1 min 12 s.")
	preview("rate", "fast", "rate_per_s must be a number a second, 0 to 1000000")
	if limits, err := f.service.Limits(t.Context(), f.caller, "mail"); err != nil || len(limits) != 0 {
		t.Errorf("a preview has set %v, %v", limits, err)
	}
	if _, err := f.service.PutLimit(t.Context(), f.caller, service.LimitSpec{
		Queue: "mail", Scope: "key", Name: "acme", Throttle: schema.Throttle{Concurrency: 2},
	}); err != nil {
		t.Fatal(err)
	}
	f.wants(f.get("/queues/mail"), row("acme", "37", "3", "0.05/s", "2 min 00 s")+
		`<td class="cut" data-label="Limit"><span>2 at once</span></td>`)
}
