package console

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/schema"
	"broker/operate/service"
)

func (f *fixture) submits(s service.Submission) string {
	f.t.Helper()
	jobs, err := f.service.Submit(f.t.Context(), f.caller, []service.Submission{s}, service.SubmitOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return jobs[0].ID
}

func (f *fixture) leases(queue string) *service.Lease {
	f.t.Helper()
	lease, err := f.service.Lease(f.t.Context(), f.caller, service.LeaseOptions{Queues: []string{queue}, Worker: "w1"})
	if err != nil || lease == nil {
		f.t.Fatal(lease, err)
	}
	return lease
}

func (f *fixture) limits(l service.LimitSpec) {
	f.t.Helper()
	if _, err := f.service.PutLimit(f.t.Context(), f.caller, l); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) sharesBy(mode string) {
	f.t.Helper()
	sharing := service.Sharing{Mode: mode, KeyTag: "tenant"}
	if err := f.service.ShareQueue(f.t.Context(), f.caller, "q", sharing); err != nil {
		f.t.Fatal(err)
	}
}

// waitCases bring a job of the queue q into each state in which it waits, and return its id.
var waitCases = []struct {
	reason core.WaitReason
	want   string
	set    func(f *fixture) string
}{
	{core.WaitWorker, "No worker asks for jobs of this queue.", func(f *fixture) string {
		return f.submits(service.Submission{Queue: "q"})
	}},
	{core.WaitWorker, "Its 1 worker is busy with 1 job: seq:1.", func(f *fixture) string {
		f.submits(service.Submission{Queue: "q"})
		f.leases("q")
		return f.submits(service.Submission{Queue: "q"})
	}},
	{core.WaitPaused, "The queue is paused", func(f *fixture) string {
		id, paused := f.submits(service.Submission{Queue: "q"}), true
		change := service.QueueChange{Paused: &paused}
		if _, err := f.service.ChangeQueue(f.t.Context(), f.caller, "q", change); err != nil {
			f.t.Fatal(err)
		}
		return id
	}},
	{core.WaitDraining, "The broker is draining", func(f *fixture) string {
		id := f.submits(service.Submission{Queue: "q"})
		if _, err := f.service.SetDrain(f.t.Context(), f.caller, true, nil); err != nil {
			f.t.Fatal(err)
		}
		return id
	}},
	{core.WaitLimit, "At most 1 job of the queue may run at once, and 1 is running.", func(f *fixture) string {
		f.limits(service.LimitSpec{Queue: "q", Throttle: schema.Throttle{Concurrency: 1}})
		f.submits(service.Submission{Queue: "q"})
		f.leases("q")
		return f.submits(service.Submission{Queue: "q"})
	}},
	{core.WaitLimit, "At most 1 job of the key acme may run at once, and 1 is running.", func(f *fixture) string {
		f.sharesBy(service.SharingNone)
		f.limits(service.LimitSpec{Queue: "q", Scope: "key", Throttle: schema.Throttle{Concurrency: 1}})
		f.submits(service.Submission{Queue: "q", Tags: []string{"tenant:acme"}})
		f.leases("q")
		return f.submits(service.Submission{Queue: "q", Tags: []string{"tenant:acme"}})
	}},
	{core.WaitLimit, "0.1 jobs of the key acme may start a second: the next may start in 10", func(f *fixture) string {
		f.sharesBy(service.SharingNone)
		f.limits(service.LimitSpec{Queue: "q", Scope: "key", Throttle: schema.Throttle{RatePerS: 0.1}})
		f.submits(service.Submission{Queue: "q", Tags: []string{"tenant:acme"}})
		f.leases("q")
		return f.submits(service.Submission{Queue: "q", Tags: []string{"tenant:acme"}})
	}},
	{core.WaitLimit, "At most 1 job of the type Mail may run at once, and 1 is running.", func(f *fixture) string {
		f.limits(service.LimitSpec{Queue: "q", Scope: "type", Throttle: schema.Throttle{Concurrency: 1}})
		f.submits(service.Submission{Queue: "q", Type: "Mail"})
		f.leases("q")
		return f.submits(service.Submission{Queue: "q", Type: "Mail"})
	}},
	{core.WaitLimit, "1 job of the shared limit database may run at once, and 1 is running.", func(f *fixture) string {
		f.limits(service.LimitSpec{
			Name: "database", Queues: []string{"q", "p"}, Throttle: schema.Throttle{Concurrency: 1},
		})
		f.submits(service.Submission{Queue: "p"})
		f.leases("p")
		return f.submits(service.Submission{Queue: "q"})
	}},
	{core.WaitLimit, "At most 5 jobs of the queue may run at once, and 4 are running.", func(f *fixture) string {
		f.limits(service.LimitSpec{Queue: "q", Throttle: schema.Throttle{Concurrency: 5}})
		f.submits(service.Submission{Queue: "q", Cost: 4})
		f.leases("q")
		return f.submits(service.Submission{Queue: "q", Cost: 2})
	}},
	{
		core.WaitOrder, "1 earlier job of the key acme is not done. The first of them, seq:1, is leased.",
		func(f *fixture) string {
			f.sharesBy(service.SharingOrdered)
			f.submits(service.Submission{Queue: "q", Tags: []string{"tenant:acme"}})
			f.leases("q")
			return f.submits(service.Submission{Queue: "q", Tags: []string{"tenant:acme"}})
		},
	},
	{core.WaitTime, "is due in 2 h 0 min", func(f *fixture) string {
		return f.submits(service.Submission{Queue: "q", DelayS: 7200})
	}},
	{core.WaitTime, "has failed 1 time; the next try is due in", func(f *fixture) string {
		id := f.submits(service.Submission{Queue: "q"})
		err := f.service.Fail(f.t.Context(), f.caller, f.leases("q").Token, service.FailOptions{Message: "no"})
		if err != nil {
			f.t.Fatal(err)
		}
		return id
	}},
	{core.WaitJobs, "comes after 1 job: seq:1 (ready).", func(f *fixture) string {
		first := f.submits(service.Submission{Queue: "p"})
		return f.submits(service.Submission{Queue: "q", After: []string{first}})
	}},
	{core.WaitBroken, "A job that it comes after is gone without being done", func(f *fixture) string {
		first := f.submits(service.Submission{Queue: "p"})
		id := f.submits(service.Submission{Queue: "q", After: []string{first}})
		cancel := service.Action{Action: service.ActionCancel}
		if err := f.service.Act(f.t.Context(), f.caller, first, cancel, nil); err != nil {
			f.t.Fatal(err)
		}
		return id
	}},
	{core.WaitBatch, "is the callback of a batch", func(f *fixture) string {
		success := service.BatchSubmission{Success: &service.Submission{Queue: "q"}}
		batch, err := f.service.OpenBatch(f.t.Context(), f.caller, success)
		if err != nil {
			f.t.Fatal(err)
		}
		f.submits(service.Submission{Queue: "p", Batch: batch.ID})
		filter := service.JobFilter{Queues: []string{"q"}}
		list, err := f.service.Jobs(f.t.Context(), f.caller, filter, service.JobPage{Limit: 1})
		if err != nil || len(list.Jobs) != 1 {
			f.t.Fatal(list, err)
		}
		return list.Jobs[0].ID
	}},
}

// TestEveryReasonIsNamedEverywhere compares the API of the job, the API of the queue, and the pages of the job, of the
// queue and of the overview.
func TestEveryReasonIsNamedEverywhere(t *testing.T) {
	t.Parallel()
	covered := map[core.WaitReason]bool{}
	for _, c := range waitCases {
		covered[c.reason] = true
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			id := c.set(f)
			j, err := f.service.Job(t.Context(), f.caller, id)
			if err != nil || j.Wait == nil || j.Reason != c.reason.String() || j.Wait.Reason != j.Reason {
				t.Fatalf("the job has %+v, %v; want reason %v", j.Wait, err, c.reason)
			}
			q, err := f.service.Queue(t.Context(), f.caller, "q")
			if err != nil || q.Wait == nil {
				t.Fatal(q, err)
			}
			texts := map[string]string{
				"API of the job": j.Wait.Text, "API of the queue": q.Wait.Text, "page of the job": f.get("/jobs/" + id),
				"page of the queue": f.get("/queues/q"),
			}
			texts["list of queues"] = f.get("/queues")
			if strings.HasPrefix(q.Wait.Text, "It ") {
				t.Errorf("the reason of a queue does not name the job that it is about: %s", q.Wait.Text)
			}
			if j.State == "ready" {
				texts["overview"] = f.get("/")
			}
			for where, text := range texts {
				if !strings.Contains(html.UnescapeString(text), c.want) {
					t.Errorf("%s lacks %q: %s", where, c.want, text[max(strings.Index(text, "<main"), 0):])
				}
			}
		})
	}
	for reason := core.WaitNone + 1; reason.String() != "unknown"; reason++ {
		if !covered[reason] {
			t.Errorf("no case for the reason %v", reason)
		}
	}
}

func TestLimitOfKeysNeedsKeys(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.submits(service.Submission{Queue: "q", Tags: []string{"customer:acme"}})
	limit := service.LimitSpec{Queue: "q", Scope: "key", Throttle: schema.Throttle{Concurrency: 1}}
	_, err := f.service.PutLimit(t.Context(), f.caller, limit)
	if err == nil || !strings.Contains(err.Error(), "broker limits share q --mode none --key-tag customer") {
		t.Errorf("a limit without effect: %v", err)
	}
	f.sharesBy(service.SharingNone)
	if _, err := f.service.PutLimit(t.Context(), f.caller, limit); err != nil {
		t.Errorf("a limit of a queue with keys: %v", err)
	}
	err = f.service.ShareQueue(t.Context(), f.caller, "q", service.Sharing{})
	if err == nil || !strings.Contains(err.Error(), "the queue has limits of keys") {
		t.Errorf("the key that a limit needs was removed: %v", err)
	}
	if err := f.service.RemoveLimit(t.Context(), f.caller, "q", "key", ""); err != nil {
		t.Fatal(err)
	}
	if err := f.service.ShareQueue(t.Context(), f.caller, "q", service.Sharing{}); err != nil {
		t.Errorf("a key that no limit needs: %v", err)
	}
}

// TestQueuesAreListedByCondition compares each list with what is known of the queues, in both ways of sorting.
func TestQueuesAreListedByCondition(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, queue := range []string{"idle", "limited", "paused", "served", "unserved"} {
		f.submits(service.Submission{Queue: queue})
		f.submits(service.Submission{Queue: queue})
	}
	f.limits(service.LimitSpec{Queue: "limited", Throttle: schema.Throttle{Concurrency: 1}})
	for _, queue := range []string{"limited", "served", "idle", "idle"} {
		f.leases(queue)
	}
	paused := true
	change := service.QueueChange{Paused: &paused}
	if _, err := f.service.ChangeQueue(t.Context(), f.caller, "paused", change); err != nil {
		t.Fatal(err)
	}
	f.advance(2 * time.Minute)
	for only, want := range map[string]string{
		"paused": "paused", "unserved": "unserved", "limited": "limited", "stuck": "paused unserved",
		"": "idle limited paused served unserved",
	} {
		for _, sort := range []string{"name", "-ready"} {
			filter := service.QueueFilter{Only: only, Sort: sort, Limit: 10}
			list, _, err := f.service.Queues(t.Context(), f.caller, filter)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, q := range list {
				names = append(names, q.Name)
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != want {
				t.Errorf("only %q, sorted by %s: %s, want %s", only, sort, got, want)
			}
		}
	}
	f.wants(f.get("/queues?only=limited"), "At most 1 job of the queue may run at once, and 1 is running.",
		`href="queues?only=stuck"`)
	f.wants(f.get("/queues?only=busy"), "only must be one of paused, unserved, limited, stuck")
}

func TestQueuePageShowsLimitsOfKeys(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.sharesBy(service.SharingNone)
	f.limits(service.LimitSpec{Queue: "q", Scope: "key", Throttle: schema.Throttle{Concurrency: 1}})
	for range 3 {
		f.submits(service.Submission{Queue: "q", Tags: []string{"tenant:acme"}})
	}
	f.leases("q")
	throttle := "limits?queue=q&amp;scope=key&amp;name=acme"
	f.wants(f.get("/queues/q"), `">acme</a>`, "<span>1 at once</span>", `href="`+throttle+`#edit"`)
	f.wants(f.get("/"+html.UnescapeString(throttle)), "1 running and 2 ready now.",
		`<details class="fold" id="edit" open>`, `name="name" value="acme"`)
}

func TestLeafLeadsToTheTopOfItsWorkflow(t *testing.T) {
	t.Parallel()
	f := setup(t)
	first := f.submits(service.Submission{Queue: "q"})
	second := f.submits(service.Submission{Queue: "q", After: []string{first}})
	leaf := f.submits(service.Submission{Queue: "q", After: []string{second}})
	f.wants(f.get("/workflows/"+leaf), `href="workflows/seq:1"`)
	if strings.Contains(f.get("/workflows/seq:1"), "larger workflow") {
		t.Error("the top leads to another workflow")
	}
}

// More queues are in use than are measured. The rates of the others are not known, which is not zero.
func TestRatesThatAreNotKnownAreNotZero(t *testing.T) {
	t.Parallel()
	f := setup(t)
	core.DoOnce(f.engine, core.Workq, &core.CreateQueue{Tag: 1, Queue: "unused"})
	if q, err := f.service.Queue(t.Context(), f.caller, "unused"); err != nil || !q.Measured {
		t.Fatalf("a queue that has had no job has an unknown rate: %+v, %v", q, err)
	}
	subs := make([]service.Submission, core.MaxDetailed)
	for i := range subs {
		subs[i].Queue = fmt.Sprintf("q%04d", i)
	}
	if _, err := f.service.Submit(t.Context(), f.caller, subs, service.SubmitOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		f.submits(service.Submission{Queue: "another"})
	}
	for queue, measured := range map[string]bool{"another": false, "q0000": true} {
		q, err := f.service.Queue(t.Context(), f.caller, queue)
		if err != nil || q.Measured != measured {
			t.Fatalf("%s: %+v, %v; want measured %v", queue, q, err, measured)
		}
		page := f.get("/queues/" + queue)
		if strings.Contains(page, unmeasured) == measured || strings.Contains(page, "come in") {
			t.Errorf("the page of %s:\n%s", queue, page)
		}
	}
	for path, want := range map[string]bool{"/queues?search=q0": false, "/queues?search=another": true} {
		if got := strings.Contains(f.get(path), "where "+unmeasured); got != want {
			t.Errorf("%s: says that rates are not known: %v", path, got)
		}
	}
}
