package console

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	faktory "github.com/contribsys/faktory/client"

	"broker/integration/harness"
)

// onCall are the situations of a person on call. Those that another test plays name it.
var onCall = []struct {
	situation string
	play      func(*testing.T)
	playedBy  func(*testing.T)
}{
	{"a stuck queue names its cause", playStuckQueues, nil},
	{"the cause stands on the page of a job, too", nil, TestWaitingJobsSayWhy},
	{"an error and the deploy that brought it are one view", playErrorAndDeploy, nil},
	{"many dead jobs run again, and that is undone", playRetryOfMany, nil},
	{"the job of a customer is found", playSearchForACustomer, nil},
	{"a hung job is marked", nil, TestOverlongJobsAreMarked},
	{"a hung job is stopped and shown as stopped", playStopOfAHungJob, nil},
	{"a tenant is throttled", playThrottleOfATenant, nil},
	{"a batch is watched, and says when it ends", playWatchOfABatch, nil},
	{"a schedule is predicted", nil, TestRunsOfAScheduleArePredictedWhileTyped},
	{"somebody without a role learns which one is missing", playLackOfARole, nil},
	{"the broker is lost and comes back", nil, TestALostConnectionIsShownBesideTheState},
	{"a node is lost and comes back", nil, TestClusterThatLacksNodesSaysSo},
}

// TestOnCall plays the situations of a person on call with clients and a browser.
func TestOnCall(t *testing.T) {
	t.Parallel()
	for _, one := range onCall {
		if one.play == nil && one.playedBy == nil {
			t.Errorf("nobody plays: %s", one.situation)
		}
		if one.play != nil {
			t.Run(one.situation, one.play)
		}
	}
}

// playStuckQueues brings eight queues to a halt, each in another way. The list of queues and the page of each name the
// cause.
func playStuckQueues(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	job := func(queue, more string) string { return pushJob(t, broker, `{"queue":%q%s}`, queue, more) }
	set := func(queue, change string) { api(t, broker, "PATCH", "/queues/"+queue, change) }
	lease := func(queue string) { api(t, broker, "POST", "/queues/"+queue+"/lease", "") }
	const acme = `,"tags":["tenant:acme"]`
	push(t, broker, []*faktory.Job{faktory.NewJob("Mail", 1)}) // the queue is default
	job("paused", "")
	set("paused", `{"paused":true}`)
	job("narrow", "")
	set("narrow", `{"throttle":{"concurrency":1}}`)
	lease("narrow")
	job("narrow", "")
	job("slow", "")
	set("slow", `{"throttle":{"rate_per_s":0.001}}`)
	lease("slow")
	job("slow", "")
	for _, keys := range []struct{ queue, sharing string }{
		{"tenants", `{"key_tag":"tenant"}`}, {"ordered", `{"key_tag":"tenant","mode":"ordered"}`},
	} {
		job(keys.queue, acme)
		set(keys.queue, `{"sharing":`+keys.sharing+`}`)
		if keys.queue == "tenants" {
			api(t, broker, "PUT", "/limits", `{"queue":"tenants","scope":"key","concurrency":1}`)
		}
		lease(keys.queue)
		job(keys.queue, acme)
	}
	job("busy", "")
	lease("busy")
	job("busy", "")
	job("chain", `,"after":["`+job("chains", "")+`"]`)

	b := openBrowser(t, "http://"+broker.HTTP)
	causes := map[string]string{
		"default": "No worker asks for jobs of this queue.",
		"paused":  "The queue is paused",
		"narrow":  "At most 1 job of the queue may run at once, and 1 is running.",
		"slow":    "At most 0.001 jobs of the queue may start a second",
		"tenants": "At most 1 job of the key acme may run at once, and 1 is running.",
		"ordered": "1 earlier job of the key acme is not done.",
		"busy":    "Its 1 worker is busy with 1 job: seq:",
		"chain":   "comes after 1 job: seq:",
	}
	b.open("/queues")
	for queue, cause := range causes {
		var row string
		b.run(chromedp.Text(fmt.Sprintf(`//tr[td//a[@class="name" and text()=%q]]`, queue), &row))
		if !contains(compact(row), cause) {
			t.Errorf("in the list, %s shows %q, want %q", queue, compact(row), cause)
		}
	}
	for queue, cause := range causes {
		b.open("/queues/" + queue)
		var doing string
		b.run(chromedp.Text("p.doing", &doing))
		if !contains(compact(doing), cause) {
			t.Errorf("the page of %s says %q, want %q", queue, compact(doing), cause)
		}
	}
	b.clean("stuck queues")
}

// leaseAs takes a job as a worker of a version.
func leaseAs(t *testing.T, broker *harness.Broker, queue, version string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		"http://"+broker.HTTP+"/api/v1/queues/"+queue+"/lease", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Broker-Worker-Version", version)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // read
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, string(text), err)
	}
	_, rest, _ := strings.Cut(string(text), `"lease":"`)
	token, _, _ := strings.Cut(rest, `"`)
	return token
}

// playErrorAndDeploy lets jobs fail in a new way once a version is deployed. One page names the error, the version of
// its workers and the deploy.
func playErrorAndDeploy(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	dies := func(n int, version, class string) {
		t.Helper()
		pushMany(t, broker, "billing", n)
		for range n {
			api(t, broker, "POST", "/leases/"+leaseAs(t, broker, "billing", version)+"/fail",
				fmt.Sprintf(`{"error_class":%q,"message":"no answer"}`, class))
		}
	}
	dies(9, "4.1", "Timeout")
	shell(t, broker, `broker mark "billing 4.2" --version 4.2`)
	dies(2, "4.2", "NullCurrency")
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/dead")
	b.wants("New since")
	b.wants("billing 4.2")
	b.run(chromedp.Click(`//a[text()="billing 4.2"]`))
	await(b, `location.search.includes('since=') && document.readyState !== 'loading'`, true)
	var row string
	b.run(chromedp.Text(`.deaths ~ .grid2 tbody tr:first-child`, &row))
	for _, want := range []string{"NullCurrency new", "4.2", "2 × no answer"} {
		if !contains(compact(row), want) {
			t.Errorf("the row of the error shows %q and not %s", compact(row), want)
		}
	}
	if data := b.attribute(".deaths .chart", "data-chart"); !contains(data, "billing 4.2") {
		t.Errorf("the chart has no mark of the deploy: %s", data)
	}
	b.clean("an error and a deploy")
}

// playRetryOfMany runs more dead jobs again than one step changes, by their error, and undoes that.
func playRetryOfMany(t *testing.T) {
	t.Parallel()
	const dead, others = 2500, 300
	broker := harness.Start(t, harness.Options{})
	fill(t, broker, dead, 1)
	shell(t, broker, "broker kill --queue queue-0000 --yes")
	pushMany(t, broker, "others", others)
	shell(t, broker, "broker kill --queue others --yes")
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/dead?queue=queue-0000")
	b.run(chromedp.Click("#select-matching"), chromedp.WaitEnabled(`.bar button[value="retry"]`),
		chromedp.Click(`.bar button[value="retry"]`))
	b.wants("2\u202f500 jobs?")
	b.run(chromedp.SendKeys(`input[name="typed"]`, fmt.Sprint(dead)), chromedp.Click("main form section button"))
	b.arrives("/dead?queue=queue-0000")
	awaitStates(t, broker, "queue-0000", "ready", dead)
	b.open("/operations")
	b.run(chromedp.Click(`//tr[contains(., "jobs.retry")]//button[contains(., "Undo")]`))
	b.wantsDone("Undone: 2\u202f500 jobs put back.")
	awaitStates(t, broker, "queue-0000", "dead", dead)
	awaitStates(t, broker, "others", "dead", others)
	b.open("/dead")
	b.wants("2\u202f800")
	b.clean("a retry of many jobs")
}

// awaitStates waits until all jobs of a queue are in one state.
func awaitStates(t *testing.T, broker *harness.Broker, queue, state string, n int) {
	t.Helper()
	harness.Eventually(t, func() string {
		q := api(t, broker, "GET", "/queues/"+queue, "")
		if q[state] != float64(n) {
			return fmt.Sprintf("%s has %v jobs that are %s, want %d", queue, q[state], state, n)
		}
		return ""
	})
}

// playSearchForACustomer finds a job by an id in its arguments, from any page, by keyboard.
func playSearchForACustomer(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	fill(t, broker, 3000, 10)
	wanted := pushJob(t, broker, `{"queue":"invoices","type":"Invoice","args":[{"customer":"cust-4711"}]}`)
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/workers")
	b.run(focus("[data-jump]"), chromedp.KeyEvent("cust-4711"), chromedp.KeyEvent(kb.Enter))
	b.run(chromedp.Click(fmt.Sprintf(`td.main a[href="jobs/%s"]`, wanted)))
	b.arrives("/jobs/" + wanted)
	b.wants("cust-4711")
	b.clean("a search for a customer")
}

// playStopOfAHungJob stops a job that runs. Its worker learns it with its heartbeat and gives the job up. The page says
// whose job it is, that it was stopped, by whom, and what the worker said.
func playStopOfAHungJob(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	id := pushJob(t, broker, `{"queue":"reports","type":"Monthly","retain_for_s":3600}`)
	lease := fmt.Sprint(api(t, broker, "POST", "/queues/reports/lease", `{"worker":"printer-1"}`)["lease"])
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/running")
	b.run(chromedp.Click("td.main a"))
	b.arrives("/jobs/" + id)
	b.run(chromedp.Click(`.head button[value="stop"]`))
	b.confirms("Stop the job Monthly " + id)
	b.wants("Its worker was asked to stop")
	if beat := api(t, broker, "POST", "/leases/"+lease+"/heartbeat", "{}"); beat["cancel_requested"] != true {
		t.Errorf("the heartbeat is answered with %v", beat)
	}
	api(t, broker, "POST", "/leases/"+lease+"/fail", `{"message":"stopped at page 3"}`)
	b.open("/jobs/" + id)
	b.run(chromedp.WaitVisible(".head .state-cancelled"))
	b.wants("stopped at page 3")
	if b.lacks("failed cancelled") == "" {
		t.Error("the page says failed and cancelled at once")
	}
	b.clean("a hung job")
}

// playThrottleOfATenant finds the tenant with most jobs on the page of the queue, sees what a limit would do while it
// is typed, and sets it.
func playThrottleOfATenant(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	for tenant, n := range map[string]int{"acme": 40, "bolt": 3} {
		job := fmt.Sprintf(`{"queue":"mail","tags":["tenant:%s"]},`, tenant)
		api(t, broker, "POST", "/jobs", `{"jobs":[`+strings.TrimSuffix(strings.Repeat(job, n), ",")+`]}`)
	}
	api(t, broker, "PATCH", "/queues/mail", `{"sharing":{"key_tag":"tenant","fair":true}}`)
	for range 6 {
		api(t, broker, "POST", "/queues/mail/lease", `{"worker":"sender"}`)
	}
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/queues/mail")
	var row string
	b.run(chromedp.Text(`#tenants tbody tr:first-child`, &row))
	if !strings.HasPrefix(compact(row), "acme 37 3 ") {
		t.Errorf("the first key shows %q", compact(row))
	}
	b.run(chromedp.Click(`//a[text()="Throttle" and contains(@aria-label, "acme")]`))
	await(b, `location.pathname + ' ' + document.readyState`, "/limits complete")
	b.run(chromedp.WaitVisible(`form.fields input[name="concurrency"]`),
		chromedp.SendKeys(`form.fields input[name="concurrency"]`, "2"))
	b.wants("The next one starts when 2 jobs have ended; until then 37 ready jobs would wait.")
	b.run(chromedp.Click(`button[value="set"]`))
	b.wants("The limit is set.")
	b.open("/queues/mail")
	b.run(chromedp.Text(`#tenants tbody tr:first-child`, &row))
	if !contains(compact(row), "2 at once") {
		t.Errorf("after the limit, the first key shows %q", compact(row))
	}
	b.clean("a throttled tenant")
}

// playWatchOfABatch opens the page of a batch and lets some of its jobs end.
func playWatchOfABatch(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{})
	client, err := harness.OpenFaktory(broker, harness.Patience)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }() // the test is over
	batch := faktory.NewBatch(client)
	batch.Description, batch.Success = "import of May", faktory.NewJob("Report", 1)
	if err := batch.Jobs(func() error {
		for i := range 4 {
			if err := batch.Push(faktory.NewJob("ImportRows", i)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	b := openBrowser(t, "http://"+broker.HTTP)
	b.live()
	b.open("/batches")
	b.run(chromedp.Click(`//a[text()="import of May"]`))
	b.wants("0 of 4 jobs are done")
	if b.lacks(" left, at the pace") == "" {
		t.Error("there is an estimate before a job has ended")
	}
	lease := fmt.Sprint(api(t, broker, "POST", "/queues/default/lease", "")["lease"])
	api(t, broker, "POST", "/leases/"+lease+"/complete", "{}")
	b.wants("1 of 4 jobs are done; about ")
	b.wants(" left, at the pace so far")
	b.clean("a batch")
}

// playLackOfARole logs in with a role for other queues than the one that matters.
func playLackOfARole(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{
		Config: principal("admin", `"admin"`) + principal("none", "") + principal("biller", `"read:billing.*"`),
	})
	broker.Password = token("admin")
	pushJob(t, broker, `{"queue":"mail"}`)
	for name, want := range map[string]string{
		"none":   "You see none: the role read (or operate, or admin) for a queue",
		"biller": "You see the queues that your roles are for: the role read for others shows more.",
	} {
		b := openBrowser(t, "http://"+broker.HTTP)
		b.logInAs(name, "/queues")
		b.wants("There is no queue that you may see.")
		b.wants(want)
		b.clean(name)
	}
}
