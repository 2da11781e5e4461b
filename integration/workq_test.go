package integration_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"broker/integration/harness"
	"broker/integration/workqclient"
)

// wqJob is a job with times that a busy machine does not reach.
func wqJob(name, body string, flags ...string) workqclient.Job {
	return workqclient.Job{
		ID: newID(), Name: name, TTR: 10 * time.Minute, TTL: time.Hour, Wait: harness.Patience, Body: []byte(body),
		Flags: flags,
	}
}

// wantClientError expects a -CLIENT-ERROR with exactly that text.
func wantClientError(t testing.TB, err error, text string) {
	t.Helper()
	refusal := (*workqclient.ClientError)(nil)
	if !errors.As(err, &refusal) || refusal.Text != text {
		t.Fatalf("error %v, want -CLIENT-ERROR %s", err, text)
	}
}

func wantIs(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// queueLens is "ready scheduled" of a queue, or the error.
func queueLens(c *workqclient.Client, name string) string {
	o, err := c.InspectQueue(name)
	if err != nil {
		return err.Error()
	}
	return o.Value("ready-len") + " " + o.Value("scheduled-len")
}

func TestWorkqAddLeaseCompleteResult(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	c, w := harness.DialWorkq(t, b), harness.DialWorkq(t, b)
	job := wqJob("ping", "pong \r\n\x00\xff")
	check(t, c.Add(job))
	wantClientError(t, c.Add(job), "Duplicate job")
	l, err := w.Lease(0, "ping")
	check(t, err)
	equal(t, "lease", l, workqclient.Lease{ID: job.ID, Name: "ping", TTR: job.TTR, Body: job.Body})
	_, err = c.Result(job.ID, 0)
	wantIs(t, err, workqclient.ErrTimeout)
	check(t, w.Complete(job.ID, []byte("done \r\n")))
	for range 2 { // a result may be read several times
		r, err := c.Result(job.ID, 0)
		check(t, err)
		equal(t, "result", r, workqclient.Result{OK: true, Body: []byte("done \r\n")})
	}
	wantClientError(t, w.Complete(job.ID, nil), "Duplicate result")
	wantClientError(t, w.Fail(job.ID, nil), "Duplicate result")
	check(t, c.Delete(job.ID))
	wantIs(t, c.Delete(job.ID), workqclient.ErrNotFound)
	_, err = c.Result(job.ID, 0)
	wantIs(t, err, workqclient.ErrNotFound)
	wantIs(t, w.Complete(job.ID, nil), workqclient.ErrNotFound)
}

func TestWorkqFailedJobHasAResultToo(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	c := harness.DialWorkq(t, b)
	job := wqJob("fails", "")
	check(t, c.Add(job))
	_, err := c.Lease(0, "fails")
	check(t, err)
	check(t, c.Fail(job.ID, []byte("why")))
	r, err := c.Result(job.ID, harness.Patience)
	check(t, err)
	equal(t, "result", r, workqclient.Result{OK: false, Body: []byte("why")})
}

func TestWorkqMaxFailsPutsTheJobBack(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	c := harness.DialWorkq(t, b)
	job := wqJob("stubborn", "x", "-max-fails=3")
	check(t, c.Add(job))
	for i := range 3 {
		_, err := c.Lease(harness.Patience, "stubborn")
		check(t, err)
		o, err := c.InspectJob(job.ID)
		check(t, err)
		equal(t, "attempts", o.Value("attempts"), fmt.Sprint(i+1))
		equal(t, "state", o.Value("state"), "4")
		check(t, c.Fail(job.ID, fmt.Append(nil, "fail ", i)))
	}
	r, err := c.Result(job.ID, harness.Patience)
	check(t, err)
	equal(t, "result", r, workqclient.Result{OK: false, Body: []byte("fail 2")})
	_, err = c.Lease(0, "stubborn")
	wantIs(t, err, workqclient.ErrTimeout)
}

func TestWorkqRunWaitsForTheWorker(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	c, w := harness.DialWorkq(t, b), harness.DialWorkq(t, b)
	for _, success := range []bool{true, false} {
		done := make(chan error, 1)
		go func() { // ends with the worker's reply, for which the test waits
			l, err := w.Lease(harness.Patience, "running")
			if err == nil && success {
				err = w.Complete(l.ID, append([]byte("re:"), l.Body...))
			} else if err == nil {
				err = w.Fail(l.ID, []byte("no"))
			}
			done <- err
		}()
		r, err := c.Run(wqJob("running", "question"))
		check(t, err)
		check(t, <-done)
		want := workqclient.Result{OK: true, Body: []byte("re:question")}
		if !success {
			want = workqclient.Result{Body: []byte("no")}
		}
		equal(t, "result", r, want)
	}
	job := wqJob("nobody", "x")
	job.Wait = 50 * time.Millisecond
	_, err := c.Run(job)
	wantIs(t, err, workqclient.ErrTimeout)
	_, err = c.InspectJob(job.ID)
	wantIs(t, err, workqclient.ErrNotFound)
}

func TestWorkqLeaseOrderIsPriorityThenArrival(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	c := harness.DialWorkq(t, b)
	for _, j := range []struct{ body, priority string }{
		{"normal 1", "0"},
		{"low", "-7"},
		{"high", "2147483647"},
		{"normal 2", "0"},
		{"lowest", "-2147483648"},
		{"above", "+1"},
	} {
		check(t, c.Add(wqJob("ordered", j.body, "-priority="+j.priority)))
	}
	page, err := c.InspectJobs("ordered", 1, 3)
	check(t, err)
	equal(t, "second of the page", page[1].Value("payload"), "normal 1")
	var order []string
	for range 6 {
		l, err := c.Lease(0, "ordered")
		check(t, err)
		order = append(order, string(l.Body))
	}
	equal(t, "order", order, []string{"high", "above", "normal 1", "normal 2", "low", "lowest"})
}

func TestWorkqQueuesAreListedByNameInPages(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	c := harness.DialWorkq(t, b)
	for _, name := range []string{"b.2", "B", "a", "b-1", "_"} {
		check(t, c.Add(wqJob(name, "x")))
	}
	var names []string
	for offset := 0; offset < 6; offset += 2 {
		page, err := c.InspectQueues(offset, 2)
		check(t, err)
		for _, o := range page {
			names = append(names, o.Name+" "+o.Value("ready-len"))
		}
	}
	equal(t, "names in byte order", names, []string{"B 1", "_ 1", "a 1", "b-1 1", "b.2 1"})
}

func TestWorkqScheduledJobWaitsForItsTime(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	c := harness.DialWorkq(t, b)
	job, late := wqJob("timed", "x"), wqJob("late", "x")
	job.At, late.At = time.Now().Add(2*time.Second).Truncate(time.Second), time.Now().Add(time.Hour)
	check(t, c.Schedule(job))
	check(t, c.Schedule(late))
	equal(t, "queue", queueLens(c, "late"), "0 1")
	page, err := c.InspectScheduled("late", 0, 10)
	check(t, err)
	equal(t, "time", page[0].Value("time"), late.At.UTC().Format("2006-01-02T15:04:05Z"))
	l, err := c.Lease(harness.Patience, "timed")
	check(t, err)
	equal(t, "id", l.ID, job.ID)
	if time.Now().Before(job.At) {
		t.Error("leased before its time")
	}
	past := wqJob("timed", "x")
	past.TTL, past.At = time.Second, time.Now().Add(-time.Minute)
	wantClientError(t, c.Schedule(past), "Invalid Time")
}

func TestWorkqLeaseRunsOutAndTheJobComesBack(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	c := harness.DialWorkq(t, b)
	job := wqJob("lost", "x", "-max-attempts=2")
	job.TTR = 300 * time.Millisecond
	check(t, c.Add(job))
	later := wqJob("lost", "later")
	check(t, c.Add(later))
	for range 2 { // each time at its original position
		l, err := c.Lease(harness.Patience, "lost")
		check(t, err)
		equal(t, "leased", l.ID, job.ID)
		harness.Eventually(t, func() string {
			if o, err := c.InspectJob(job.ID); err != nil || o.Value("state") == "4" {
				return fmt.Sprint("still leased: ", o, err)
			}
			return ""
		})
	}
	r, err := c.Result(job.ID, harness.Patience)
	check(t, err)
	equal(t, "result after the last attempt", r, workqclient.Result{Body: []byte{}})
	l, err := c.Lease(0, "lost")
	check(t, err)
	equal(t, "the other", l.ID, later.ID)
}

func TestWorkqTTLRemovesTheJobAndTellsItsWaiters(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	c := harness.DialWorkq(t, b)
	before, err := c.InspectServer()
	check(t, err)
	job := wqJob("mortal", "x")
	job.TTL = 500 * time.Millisecond
	check(t, c.Add(job))
	_, err = c.Result(job.ID, harness.Patience)
	wantIs(t, err, workqclient.ErrNotFound)
	after, err := c.InspectServer()
	check(t, err)
	equal(t, "evicted before and after", before.Value("evicted-jobs")+after.Value("evicted-jobs"), "01")
	check(t, c.Add(wqJob("mortal", "x")))
}

func TestWorkqWaitersGetTheResultOfADelete(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	c := harness.DialWorkq(t, b)
	job := wqJob("doomed", "x")
	check(t, c.Add(job))
	const waiters = 5
	answers := make(chan error, waiters)
	for range waiters {
		w := harness.DialWorkq(t, b)
		go func() { // ends with the delete, for which the test waits
			_, err := w.Result(job.ID, harness.Patience)
			answers <- err
		}()
	}
	time.Sleep(100 * time.Millisecond) // most of them wait by then; later ones receive the same reply
	check(t, c.Delete(job.ID))
	for range waiters {
		wantIs(t, <-answers, workqclient.ErrNotFound)
	}
}

func TestWorkqConnectionContinuesAfterErrors(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	c := harness.DialWorkq(t, b)
	id := newID()
	const clientError = "-CLIENT-ERROR "
	for _, e := range []struct{ send, want string }{
		{"nonsense\r\n", clientError + "Unknown command"},
		{"\r\n", clientError + "Unknown command"},
		{" add\r\n", clientError + "Unknown command"},
		{"ADD x\r\n", clientError + "Unknown command"},
		{"lease q\r\n", clientError + "Invalid command args"},
		{"lease q -1\r\n", clientError + "Invalid wait timeout"},
		{"lease bad/name 0\r\n", clientError + "Invalid Name"},
		{"lease q 0\r\n", "-TIMEOUT"},
		{"delete not-a-uuid\r\n", clientError + "Invalid ID"},
		{"delete " + id + "x\r\n", clientError + "Invalid ID"},
		{"result " + id + " 0\r\n", "-NOT-FOUND"},
		{"inspect\r\n", clientError + "Invalid command args"},
		{"inspect something\r\n", clientError + "Unknown command"},
		{"inspect queue never-used\r\n", "-NOT-FOUND"},
		{"add " + id + " q 0 1000 1\r\nx\r\n", clientError + "Invalid TTR"},
		{"add " + id + " q 1000 0 1\r\nx\r\n", clientError + "Invalid TTL"},
		{"add " + id + " bad/name 1000 1000 1\r\nx\r\n", clientError + "Invalid Name"},
		{"add " + id + " q 1000 1000 1 -priority=x\r\nx\r\n", clientError + "Invalid Priority"},
		{"add " + id + " q 1000 1000 1 -max-attempts=256\r\nx\r\n", clientError + "Invalid Max Attempts"},
		{"add " + id + " q 1000 1000 1 -max-fails=256\r\nx\r\n", clientError + "Invalid Max Fails"},
		{"add " + id + " q 1000 1000 1 -a=1 -b=2 -c=3 -d=4\r\nx\r\n", clientError + "Invalid command args"},
		{"add 00000000-0000-1000-8000-000000000001 q 1000 1000 1\r\nx\r\n", clientError + "Invalid ID"},
		// The declared body is consumed whatever is wrong with the line: it is never executed as a command.
		{"add " + id + " q x 1000 10\r\ninspect\r\nx\r\n", clientError + "Invalid TTR"},
		{"complete " + id + " 9\r\ndelete x\n\r\n", "-NOT-FOUND"},
		{"inspect queues 0 101\r\n", clientError + "Invalid limit"},
	} {
		check(t, c.Send([]byte(e.send)))
		line, err := c.Line(harness.Patience)
		check(t, err)
		if line != e.want {
			t.Errorf("%q:\n got %s\nwant %s", e.send, line, e.want)
		}
	}
	check(t, c.Silent(50*time.Millisecond))
	check(t, c.Add(wqJob("after-all", "x")))
}

func TestWorkqBytesMayArriveInAnyPieces(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	c := harness.DialWorkq(t, b)
	job := wqJob("split", "")
	all := fmt.Sprintf("add %s split 60000 60000 6\r\nab\r\ncd\r\nlease split 0\r\ncomplete %s 2\r\nok\r\n", job.ID,
		job.ID)
	for i := range len(all) {
		check(t, c.Send([]byte(all[i:i+1])))
	}
	for _, want := range []string{"+OK", "+OK 1", job.ID + " split 60000 6", "ab", "cd", "+OK"} {
		line, err := c.Line(harness.Patience)
		check(t, err)
		equal(t, "line", line, want)
	}
}

func TestWorkqRepliesLeaveInOneWrite(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	harness.BrokerOnly(t)
	c, err := net.Dial("tcp", b.Workq)
	check(t, err)
	defer func() { _ = c.Close() }() // only the replies matter
	check(t, c.SetDeadline(time.Now().Add(harness.Patience)))
	buf := make([]byte, 64<<10)
	ask := func(request, want string) {
		t.Helper()
		_, err := c.Write([]byte(request))
		check(t, err)
		n, err := c.Read(buf) // one read returns what one write sent
		check(t, err)
		equal(t, "reply", string(buf[:n]), want)
	}
	body := strings.Repeat("b", 4096)
	for range 20 {
		id := newID()
		ask(fmt.Sprintf("add %s whole 60000 60000 %d\r\n%s\r\n", id, len(body), body), "+OK\r\n")
		ask("lease whole 0\r\n", fmt.Sprintf("+OK 1\r\n%s whole 60000 %d\r\n%s\r\n", id, len(body), body))
		ask(fmt.Sprintf("complete %s 1\r\nr\r\n", id), "+OK\r\n")
		ask("result "+id+" 0\r\n", "+OK 1\r\n"+id+" 1 1\r\nr\r\n")
	}
}

func TestWorkqBodiesUpToTheLimit(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	c := harness.DialWorkq(t, b)
	largest := wqJob("large", strings.Repeat("x", 1<<20))
	check(t, c.Add(largest))
	l, err := c.Lease(0, "large")
	check(t, err)
	equal(t, "size", len(l.Body), 1<<20)
	tooLarge := wqJob("large", strings.Repeat("x", 1<<20+1))
	wantClientError(t, c.Add(tooLarge), "Invalid payload size")
}

func TestWorkqBlockedLeaseGetsTheNextJobAtOnce(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	c := harness.DialWorkq(t, b)
	const workers, rounds = 4, 50
	leased := make(chan string, workers)
	stop := make(chan struct{})
	for range workers {
		w := harness.DialWorkq(t, b)
		go func() { // ends when the test closes the connection
			for {
				l, err := w.Lease(2*harness.Patience, "never", "woken")
				select {
				case <-stop:
					return
				default:
				}
				if err != nil {
					t.Error(err)
					return
				}
				leased <- l.ID
			}
		}()
	}
	for range rounds {
		job := wqJob("woken", "x")
		check(t, c.Add(job))
		select {
		case id := <-leased:
			equal(t, "id", id, job.ID)
		case <-time.After(harness.Patience):
			t.Fatal("a lease waits although a job is ready")
		}
	}
	close(stop)
}

func TestWorkqLeaseOfAClosedConnectionTakesNoJob(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	c := harness.DialWorkq(t, b)
	awaitClients := func(want string) {
		t.Helper()
		harness.Eventually(t, func() string {
			o, err := c.InspectServer()
			check(t, err)
			if n := o.Value("active-clients"); n != want {
				return n + " clients, not " + want
			}
			return ""
		})
	}
	var gone []*workqclient.Client
	for range 10 {
		leaser := harness.DialWorkq(t, b)
		check(t, leaser.Send([]byte("lease vanish 60000\r\n")))
		gone = append(gone, leaser)
	}
	awaitClients("11") // all were accepted; closed ones may still be counted
	for _, leaser := range gone {
		check(t, leaser.Close())
	}
	awaitClients("1")
	job := wqJob("vanish", "x")
	check(t, c.Add(job))
	l, err := c.Lease(0, "vanish")
	check(t, err)
	equal(t, "id", l.ID, job.ID)
}

func TestWorkqRunIsWithdrawnWhenItsClientLeaves(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	c, gone := harness.DialWorkq(t, b), harness.DialWorkq(t, b)
	id := newID()
	check(t, gone.Send([]byte("run "+id+" withdrawn 60000 60000 1\r\nx\r\n")))
	harness.Eventually(t, func() string {
		if got := queueLens(c, "withdrawn"); got != "1 0" {
			return got
		}
		return ""
	})
	check(t, gone.Close())
	harness.Eventually(t, func() string {
		if _, err := c.InspectJob(id); !errors.Is(err, workqclient.ErrNotFound) {
			return fmt.Sprint("still there: ", err)
		}
		return ""
	})
	_, err := c.Lease(0, "withdrawn")
	wantIs(t, err, workqclient.ErrTimeout)
}
