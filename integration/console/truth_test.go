package console

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/redis/go-redis/v9"

	"broker/integration/beanstalkclient"
	"broker/integration/conveyorclient"
	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/server"
	"broker/integration/sqsclient"
)

// states are the columns of a queue, as pages and the API name them.
var states = []string{"ready", "leased", "scheduled", "blocked", "retrying", "dead", "done"}

// figures are numbers by name.
type figures map[string]int

// TestEveryFigureIsTheSameEverywhere fills a broker with jobs in each state, workers of each protocol, keys, errors and
// limits whose numbers it knows, and reads them from the list of queues, the page of each, the overview, /dead,
// /limits, the API and the metrics.
func TestEveryFigureIsTheSameEverywhere(t *testing.T) {
	t.Parallel()
	addresses, args := map[string]string{}, []string{}
	for _, protocol := range []string{"beanstalk", "qless", "conveyor", "sqs"} {
		address, err := server.FreeAddr()
		if err != nil {
			t.Fatal(err)
		}
		addresses[protocol] = address
		args = append(args, "--"+protocol, address)
	}
	broker := harness.Start(t, harness.Options{Args: args})
	takeWithEveryProtocol(t, broker, addresses)
	fillWithTruth(t, broker)
	truth := map[string]figures{
		"work": {"ready": 2, "leased": 8, "workers": 9},
		"bill": {
			"ready": 4, "leased": 1, "scheduled": 2, "blocked": 1, "retrying": 1, "dead": 5, "done": 1, "workers": 1,
		},
	}
	all := figures{}
	for _, q := range truth {
		for _, state := range states {
			all[state] += q[state]
		}
	}
	metrics := readMetrics(t, broker)
	b := openBrowser(t, "http://"+broker.HTTP)
	for queue, want := range truth {
		b.open("/queues")
		same(t, "the list of queues on "+queue, b.queueRow(queue), want)
		b.open("/queues/" + queue)
		same(t, "the page of "+queue, b.queueFigures(), want)
		same(t, "the API on "+queue, apiFigures(t, broker, queue), want)
		measured := figures{"workers": metrics[fmt.Sprintf(`broker_queue_workers{queue=%q}`, queue)]}
		for _, state := range states {
			measured[state] = metrics[fmt.Sprintf(`broker_jobs{queue=%q,state=%q}`, queue, state)]
		}
		same(t, "the metrics of "+queue, measured, want)
	}
	checkKeysAndLimits(t, b, broker)
	checkOverview(t, b, broker, metrics, all)
	checkErrors(t, b, broker)
	b.clean("figures")
}

// same compares figures; those that a source does not show are left out.
func same(t *testing.T, source string, got, want figures) {
	t.Helper()
	if len(got) == 0 {
		t.Errorf("%s: there are no figures", source)
	}
	for name, n := range got {
		if n != want[name] {
			t.Errorf("%s: %s is %d, want %d", source, name, n, want[name])
		}
	}
}

// takeWithEveryProtocol leaves two ready jobs in the queue work, and eight that run: one with a worker of each
// protocol. A ninth worker waits.
func takeWithEveryProtocol(t *testing.T, broker *harness.Broker, addresses map[string]string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	job := `{"queue":"work","body":"x"},`
	api(t, broker, "POST", "/jobs", `{"jobs":[`+strings.TrimSuffix(strings.Repeat(job, 10), ",")+`]}`)
	_, err := harness.DialWorkq(t, broker).Lease(harness.Patience, "work")
	must(err)
	gearman := harness.DialGearman(t, broker)
	must(gearman.Send(gearmanclient.CanDo, "work"))
	_, _, _, _, err = gearman.Grab(harness.Patience)
	must(err)
	worker, err := harness.OpenFaktory(broker, harness.Patience)
	must(err)
	t.Cleanup(func() { _ = worker.Close() }) // the test is over
	fetched, err := worker.Fetch("work")
	if must(err); fetched == nil {
		t.Fatal("the Faktory worker gets no job")
	}
	tube, err := beanstalkclient.Dial(addresses["beanstalk"])
	must(err)
	t.Cleanup(func() { _ = tube.Close() }) // the test is over
	must(tube.Watch("work"))
	_, err = tube.Reserve(harness.Patience)
	must(err)
	api(t, broker, "POST", "/queues/work/lease", `{"worker":"by-http"}`)
	rdb := redis.NewClient(&redis.Options{ // a command that is tried again would pop a second job
		Addr: addresses["qless"], DisableIdentity: true, ReadTimeout: harness.Patience, MaxRetries: -1,
	})
	t.Cleanup(func() { _ = rdb.Close() }) // the test is over
	ask := func(command string, args ...any) (string, error) {
		now := strconv.FormatFloat(float64(time.Now().UnixMicro())/1e6, 'f', -1, 64)
		return rdb.Do(t.Context(), append([]any{"EVAL", "local QlessAPI = {}", 0, command, now}, args...)...).Text()
	}
	_, err = ask("config.set", "heartbeat", "3600") // the test may last longer than a minute
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	popped, err := ask("pop", "work", "by-qless", "1")
	if must(err); !strings.Contains(popped, `"jid"`) {
		t.Fatalf("the Qless worker gets %s", popped)
	}
	conveyor := conveyorclient.Open(addresses["conveyor"])
	t.Cleanup(func() { _ = conveyor.Close() }) // the test is over
	belt, err := conveyor.Pop(t.Context(), "work")
	if must(err); belt == nil {
		t.Fatal("the Conveyor worker gets no job")
	}
	queues, name := sqsclient.New(addresses["sqs"]), "work"
	made, err := queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	must(err)
	received, err := queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: made.QueueUrl, VisibilityTimeout: 3600,
	})
	if must(err); len(received.Messages) != 1 {
		t.Fatal("the SQS client gets no message")
	}
	waits := harness.DialGearman(t, broker)
	must(waits.Send(gearmanclient.CanDo, "work"))
	must(waits.Send(gearmanclient.EchoReq, "known"))
	_, err = waits.Expect(gearmanclient.EchoRes, harness.Patience)
	must(err)
}

// fillWithTruth makes jobs in each state in the queue bill: of two keys, with a limit, and dead with two errors.
func fillWithTruth(t *testing.T, broker *harness.Broker) {
	t.Helper()
	lease := func() string {
		return fmt.Sprint(api(t, broker, "POST", "/queues/bill/lease", `{"worker":"w"}`)["lease"])
	}
	for class, n := range map[string]int{"Timeout": 3, "NoFunds": 2} {
		for range n {
			pushJob(t, broker, `{"queue":"bill","type":"Charge","max_fails":1}`)
			api(t, broker, "POST", "/leases/"+lease()+"/fail", fmt.Sprintf(`{"error_class":%q}`, class))
		}
	}
	pushJob(t, broker, `{"queue":"bill","retain_for_s":3600}`)
	api(t, broker, "POST", "/leases/"+lease()+"/complete", "{}")
	pushJob(t, broker, `{"queue":"bill","max_fails":9}`)
	api(t, broker, "POST", "/leases/"+lease()+"/fail", `{"message":"no","retry_in_s":3600}`)
	api(t, broker, "PATCH", "/queues/bill", `{"sharing":{"key_tag":"tenant","fair":true}}`)
	api(t, broker, "PUT", "/limits", `{"queue":"bill","scope":"key","concurrency":1}`)
	for range 4 {
		pushJob(t, broker, `{"queue":"bill","tags":["tenant:acme"]}`)
	}
	lease() // there is no other key yet
	pushJob(t, broker, `{"queue":"bill","tags":["tenant:bolt"]}`)
	for range 2 {
		pushJob(t, broker, `{"queue":"bill","delay_s":3600}`)
	}
	pushJob(t, broker, `{"queue":"bill","after":[%q]}`, pushJob(t, broker, `{"queue":"later","delay_s":7200}`))
}

// number reads a number with the spaces of pages.
func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.NewReplacer("\u202f", "", "–", "0", " ", "").Replace(strings.TrimSpace(text)))
	if err != nil {
		t.Fatalf("%q is not a number", text)
	}
	return n
}

// numbers reads the texts of a page as figures. Running is the state leased.
func numbers(t *testing.T, texts map[string]string) figures {
	t.Helper()
	f := figures{}
	for name, text := range texts {
		if name = strings.ToLower(name); name == "running" {
			name = "leased"
		}
		f[name] = number(t, text)
	}
	return f
}

func (b *browser) queueRow(queue string) figures {
	b.t.Helper()
	texts := map[string]string{}
	b.eval(fmt.Sprintf(`Object.fromEntries([...[...document.querySelectorAll('main tbody tr')].find((tr) => tr.querySelector('a.name').textContent === %q)
		.querySelectorAll('td.num')].map((td) => [td.dataset.label, td.innerText]).filter(([label]) => !['Oldest', 'In', 'Out'].includes(label)))`,
		queue), &texts)
	return numbers(b.t, texts)
}

// shownFigures are the boxes with figures of a page that have a state's colour.
const shownFigures = `Object.fromEntries([...document.querySelectorAll('main a.figure[class*="dot-"]')].map((a) => [a.querySelector('.label').innerText, a.querySelector('.value').innerText]))`

func (b *browser) queueFigures() figures {
	b.t.Helper()
	texts := map[string]string{}
	b.eval(shownFigures, &texts)
	var workers string
	b.eval(`[...document.querySelectorAll('main .title')].find((e) => e.innerText.includes('Who works')).querySelector('.right').innerText`,
		&workers)
	texts["workers"], _, _ = strings.Cut(workers, " ")
	return numbers(b.t, texts)
}

func apiFigures(t *testing.T, broker *harness.Broker, queue string) figures {
	t.Helper()
	f := figures{}
	q := api(t, broker, "GET", "/queues/"+queue, "")
	for _, name := range append([]string{"workers"}, states...) {
		n, ok := q[name].(float64)
		if !ok {
			t.Errorf("the API has no %s", name)
		}
		f[name] = int(n)
	}
	return f
}

// readMetrics reads /metrics: whole numbers by name and labels.
func readMetrics(t *testing.T, broker *harness.Broker) figures {
	t.Helper()
	resp, err := http.Get("http://" + broker.HTTP + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	f := figures{}
	for _, m := range regexp.MustCompile(`(?m)^(broker_\S+) (\d+)$`).FindAllStringSubmatch(textOf(t, resp), -1) {
		f[m[1]] = number(t, m[2])
	}
	return f
}

// checkKeysAndLimits compares the keys of the queue bill and the use of its limit with the API.
func checkKeysAndLimits(t *testing.T, b *browser, broker *harness.Broker) {
	t.Helper()
	want := "acme 3 1, bolt 1 0"
	b.open("/queues/bill")
	var rows []string
	b.eval(`[...document.querySelectorAll('#tenants tbody tr')].filter((tr) => tr.querySelector('a.name')).map((tr) => ['.name', '[data-label="Ready"]', '[data-label="Running"]'].map((s) => tr.querySelector(s).innerText).join(' '))`,
		&rows)
	if got := strings.Join(rows, ", "); got != want {
		t.Errorf("the page has the keys %s, want %s", got, want)
	}
	var keys []string
	for _, k := range api(t, broker, "GET", "/queues/bill/keys", "")["keys"].([]any) {
		if key := k.(map[string]any); key["name"] != nil {
			keys = append(keys, fmt.Sprintf("%v %v %v", key["name"], key["ready"], key["leased"]))
		}
	}
	if got := strings.Join(keys, ", "); got != want {
		t.Errorf("the API has the keys %s, want %s", got, want)
	}
	b.open("/limits")
	var uses string
	b.eval(`document.querySelector('#list td[data-label="In use"]').innerText`, &uses)
	if got := compact(uses); got != "1 acme · 3 wait 0 bolt · 1 waits" {
		t.Errorf("the page of limits shows %q", got)
	}
	limit := api(t, broker, "GET", "/limits?queue=bill", "")["limits"].([]any)[0].(map[string]any)
	for _, u := range limit["uses"].([]any) {
		use := u.(map[string]any)
		if use["name"] == "acme" && (use["taken"] != 1.0 || use["ready"] != 3.0) {
			t.Errorf("the API has the use %v", use)
		}
	}
}

// checkOverview compares the sums of all queues, and what each protocol holds.
func checkOverview(t *testing.T, b *browser, broker *harness.Broker, metrics, all figures) {
	t.Helper()
	all["scheduled"]++ // of the queue later
	b.open("/")
	texts := map[string]string{}
	b.eval(shownFigures, &texts)
	same(t, "the overview", numbers(t, texts), all)
	summary := api(t, broker, "GET", "/summary", "")
	jobs, measured := figures{}, figures{}
	for _, state := range states {
		n, _ := summary["jobs"].(map[string]any)[state].(float64)
		jobs[state] = int(n)
		for _, queue := range []string{"work", "bill", "later"} {
			measured[state] += metrics[fmt.Sprintf(`broker_jobs{queue=%q,state=%q}`, queue, state)]
		}
	}
	same(t, "the summary of the API", jobs, all)
	same(t, "the sum of the metrics", measured, all)
	held := map[string]string{}
	b.eval(`Object.fromEntries([...document.querySelectorAll('main a[href^="workers?protocol="]')].map((a) => [new URL(a.href).searchParams.get('protocol'), a.closest('tr').cells[2].innerText]))`,
		&held)
	for protocol, text := range held {
		want := 1
		if protocol == "http" {
			want = 2
		}
		n := metrics[fmt.Sprintf(`broker_held_jobs{protocol=%q}`, protocol)]
		if number(t, text) != want || n != want {
			t.Errorf("%s holds %s jobs on the overview and %d in the metrics, want %d", protocol, text, n, want)
		}
	}
	if len(held) != 8 {
		t.Errorf("the overview has the protocols %v", held)
	}
}

// checkErrors compares the classes of dead jobs with what the API finds by their filters.
func checkErrors(t *testing.T, b *browser, broker *harness.Broker) {
	t.Helper()
	b.open("/dead")
	texts := map[string]string{}
	b.eval(`Object.fromEntries([...document.querySelectorAll('main .grid2 tbody tr')].map((tr) => [tr.querySelector('a.name').innerText, tr.querySelector('[data-label="Jobs"]').innerText]))`,
		&texts)
	for class, want := range map[string]int{"Timeout": 3, "NoFunds": 2} {
		if got := number(t, texts[class]); got != want {
			t.Errorf("/dead shows %d jobs of %s, want %d", got, class, want)
		}
		if n := countMatching(t, broker, fmt.Sprintf(`{"state":"dead","error_class":%q}`, class)); n != want {
			t.Errorf("the API finds %d jobs of %s, want %d", n, class, want)
		}
	}
	b.wants("5 in 24 hours")
	b.wants("all 5 that match")
}
