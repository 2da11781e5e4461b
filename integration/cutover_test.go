package integration_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/beanstalkclient"
	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

// cutOverCase is a protocol whose queues are cut over while clients work.
type cutOverCase struct {
	protocol, source string
	upstream         func(t *testing.T, b *harness.Broker) (address string, importFlags []string)
	// start starts a broker, and returns its port for the protocol.
	start func(t *testing.T) (b *harness.Broker, address string)
	// produce submits a job, and returns once it is acknowledged. foreground producers wait for its result where there
	// is one.
	producer func(t *testing.T, address string, foreground bool) (submit func(body string) error, end io.Closer)
	// worker serves until its connection ends.
	worker func(t *testing.T, address string, ran func(body string)) (serve func() error, end io.Closer)
}

const cutOverQueue = "orders"

var cutOvers = []cutOverCase{
	{"gearman", "gearmand", startGearmandSource, startPort(gearmanOf), gearmanOrders, gearmanOrderWorker},
	{
		"faktory", "faktory", startFaktorySource, startPort(func(b *harness.Broker) string { return b.Faktory }),
		faktoryOrders, faktoryOrderWorker,
	},
	{"beanstalk", "beanstalkd", startBeanstalkSource, startBeanstalkPort, beanstalkOrders, beanstalkOrderWorker},
}

func startPort(port func(b *harness.Broker) string) func(t *testing.T) (b *harness.Broker, address string) {
	return func(t *testing.T) (b *harness.Broker, address string) {
		b = harness.Start(t, harness.Options{})
		return b, port(b)
	}
}

// beanstalkOrders submits jobs one by one; the foreground producer also uses a tube that is never cut over.
func beanstalkOrders(t *testing.T, address string, more bool) (submit func(body string) error, end io.Closer) {
	c, err := beanstalkclient.Dial(address)
	check(t, err)
	put := func(tube, body string) error {
		err := c.Use(tube)
		if err == nil {
			_, err = c.Put(beanstalkclient.Job{TTR: time.Minute, Body: []byte(body)})
		}
		return err
	}
	return func(body string) error {
		err := put(cutOverQueue, body)
		if more && err == nil {
			err = put("others", "other "+body)
		}
		return err
	}, c
}

func beanstalkOrderWorker(t *testing.T, address string, ran func(body string)) (serve func() error, end io.Closer) {
	c, err := beanstalkclient.Dial(address)
	check(t, err)
	check(t, c.Watch("others"))
	check(t, c.Watch(cutOverQueue))
	var refused beanstalkclient.Refusal
	return func() error {
		for {
			j, err := c.Reserve(2 * time.Second)
			if errors.As(err, &refused) {
				continue
			}
			if err != nil {
				return err
			}
			ran(string(j.Body))
			if err := c.Do("DELETED", "delete "+j.ID); err != nil && !errors.As(err, &refused) {
				return err
			}
		}
	}, c
}

// faktoryOrders submits jobs one by one, or, as the foreground producer, with one of a queue that is never cut over.
func faktoryOrders(t *testing.T, address string, many bool) (submit func(body string) error, end io.Closer) {
	c := dialSourceFaktory(t, address)
	job := func(queue, body string) *faktory.Job {
		j := faktory.NewJob("Order", body)
		j.Queue = queue
		return j
	}
	return func(body string) error {
		if !many {
			return c.Push(job(cutOverQueue, body))
		}
		refused, err := c.PushBulk([]*faktory.Job{job(cutOverQueue, body), job("others", "other "+body)})
		if err == nil && len(refused) > 0 {
			err = fmt.Errorf("refused: %v", refused)
		}
		return err
	}, c
}

func faktoryOrderWorker(t *testing.T, address string, ran func(body string)) (serve func() error, end io.Closer) {
	fetching, finishing := dialSourceFaktory(t, address), dialSourceFaktory(t, address)
	var down *faktory.ProtocolError
	return func() error {
		for {
			j, err := fetching.Fetch("others", cutOverQueue)
			if err != nil && !errors.As(err, &down) {
				return err
			}
			if j == nil {
				continue
			}
			ran(j.Args[0].(string))
			if err := finishing.Ack(j.Jid); err != nil && !errors.As(err, &down) { // on another connection than it came
				return err
			}
		}
	}, fetching
}

func gearmanOrders(t *testing.T, address string, foreground bool) (submit func(body string) error, end io.Closer) {
	c, err := gearmanclient.Dial(address)
	check(t, err)
	return func(body string) error {
		if !foreground {
			_, err := c.Submit(gearmanclient.SubmitJobBg, cutOverQueue, "", body)
			return err
		}
		handle, err := c.Submit(gearmanclient.SubmitJob, cutOverQueue, body, body)
		if err != nil {
			return err
		}
		p, err := c.Expect(gearmanclient.WorkComplete, harness.Patience)
		if want := handle + "\x00done " + body; err == nil && string(p.Data) != want {
			err = fmt.Errorf("result %q, not %q", p.Data, want)
		}
		return err
	}, c
}

func gearmanOrderWorker(t *testing.T, address string, ran func(body string)) (serve func() error, end io.Closer) {
	c, err := gearmanclient.Dial(address)
	check(t, err)
	check(t, c.Send(gearmanclient.CanDo, cutOverQueue))
	return func() error {
		for {
			handle, _, _, body, err := c.Grab(time.Hour)
			if err != nil {
				return err
			}
			ran(body)
			if err := c.Send(gearmanclient.WorkComplete, handle, "done "+body); err != nil {
				return err
			}
		}
	}, c
}

// cutOverLoad is several producers and workers, and what they have done.
type cutOverLoad struct {
	t       *testing.T
	closers []io.Closer
	stop    atomic.Bool
	ended   atomic.Bool
	work    sync.WaitGroup

	mu      sync.Mutex // guards what follows
	acked   map[string]bool
	ran     map[string]int
	refused int
}

// startCutOverLoad starts it. With tolerant, submissions may fail; then they are counted.
func startCutOverLoad(t *testing.T, c *cutOverCase, address string, tolerant bool) *cutOverLoad {
	l := &cutOverLoad{t: t, acked: make(map[string]bool), ran: make(map[string]int)}
	var producing sync.WaitGroup
	for w := range 4 {
		serve, end := c.worker(t, address, func(body string) {
			time.Sleep(2 * time.Millisecond) // so that jobs wait
			l.mu.Lock()
			defer l.mu.Unlock()
			l.ran[body]++
		})
		l.closers = append(l.closers, end)
		l.work.Go(func() {
			if err := serve(); !l.ended.Load() {
				t.Errorf("worker %d: %v", w, err)
			}
		})
	}
	for p := range 4 {
		submit, end := c.producer(t, address, p == 0 && !tolerant)
		l.closers = append(l.closers, end)
		producing.Go(func() {
			for i := 0; !l.stop.Load(); i++ {
				body := fmt.Sprintf("%d-%d", p, i)
				err := submit(body)
				l.mu.Lock()
				switch {
				case err == nil:
					l.acked[body] = true
				case tolerant:
					l.refused++
				default:
					t.Errorf("producer %d: %v", p, err)
					l.stop.Store(true)
				}
				l.mu.Unlock()
				time.Sleep(4 * time.Millisecond)
			}
		})
	}
	l.work.Go(producing.Wait)
	t.Cleanup(l.end) // before the connections are closed
	return l
}

// burst submits many jobs at once.
func (l *cutOverLoad) burst(c *cutOverCase, address, name string, n int) {
	l.t.Helper()
	submit, end := c.producer(l.t, address, false)
	defer func() { _ = end.Close() }() // every job was acknowledged
	for i := range n {
		body := fmt.Sprint(name, i)
		check(l.t, submit(body))
		l.mu.Lock()
		l.acked[body] = true
		l.mu.Unlock()
	}
}

// refusals is how many submissions have failed.
func (l *cutOverLoad) refusals() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

func (l *cutOverLoad) end() {
	l.stop.Store(true)
	l.ended.Store(true)
	for _, c := range l.closers {
		_ = c.Close() // ends those who use it
	}
	l.work.Wait()
}

// check waits until all jobs ran, and reports those that ran more often than that. held is how many may still be
// reserved.
func (l *cutOverLoad) check(most int, held func() int) {
	l.t.Helper()
	l.stop.Store(true)
	harness.Eventually(l.t, func() string {
		l.mu.Lock()
		defer l.mu.Unlock()
		missing := 0
		for body := range l.acked {
			if l.ran[body] == 0 {
				missing++
			}
		}
		if missing > 0 && missing > held() {
			return fmt.Sprintf("%d of %d jobs did not run", missing, len(l.acked))
		}
		return ""
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	for body, n := range l.ran {
		if n > most {
			l.t.Errorf("job %s ran %d times", body, n)
		}
	}
	l.t.Logf("%d jobs, %d refused", len(l.acked), l.refused)
}

// shadowTool runs broker shadow cut-over, roll-back or status, until the broker answers it.
func shadowTool(t *testing.T, page string, args ...string) (said string) {
	t.Helper()
	harness.Eventually(t, func() string {
		r := harness.Exec(t,
			harness.Command{Argv: append(append([]string{harness.Binary(t), "shadow"}, args...), "--at", page)})
		if said = r.Stdout; r.Code != 0 {
			return fmt.Sprintf("%v: exit code %d: %s", args, r.Code, r.Stderr)
		}
		return ""
	})
	return said
}

// startDrain moves what waits at the old server until end is called, which returns how many jobs were moved: none if
// the import is so slow that it has hardly begun.
func startDrain(t *testing.T, b *harness.Broker, c *cutOverCase, address string, flags []string) (end func() int) {
	cmd := importCommand(t, b, c.source, address, append(flags, "--queues", cutOverQueue, "--follow")...)
	var said, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &errs
	check(t, cmd.Start())
	return func() int {
		t.Helper()
		check(t, cmd.Process.Signal(syscall.SIGINT))
		err := cmd.Wait()
		if early := cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled(); early && said.Len() == 0 {
			return 0
		}
		if err != nil && !strings.Contains(errs.String(), "interrupted") {
			t.Errorf("import: %v\n%s", err, errs.String())
		}
		var r importReport
		check(t, json.Unmarshal([]byte(said.String()), &r))
		return r.Moved
	}
}

func TestQueuesAreCutOverAndRolledBackUnderLoad(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	for _, c := range cutOvers {
		t.Run(c.protocol, func(t *testing.T) {
			t.Parallel()
			b, to := c.start(t)
			address, flags := c.upstream(t, b)
			_, listen, page := startShadow(t, c.protocol, address, "--to", to)
			load := startCutOverLoad(t, &c, listen, false)
			moved := 0
			for round := 0; round < 2 || moved == 0 && round < 20; round++ { // on a busy machine few jobs wait, or none
				time.Sleep(300 * time.Millisecond)
				load.burst(&c, listen, fmt.Sprint("burst", round, "-"), 1000)
				said := shadowTool(t, page, "cut-over", cutOverQueue)
				if !strings.Contains(said, "broker import --from "+c.source) {
					t.Errorf("cut-over said %s", said)
				}
				endDrain := startDrain(t, b, &c, address, flags)
				time.Sleep(1500 * time.Millisecond)
				moved += endDrain()
				shadowTool(t, page, "roll-back", cutOverQueue)
			}
			time.Sleep(500 * time.Millisecond)
			load.check(1, func() int { return 0 })
			if t.Logf("%d jobs were moved", moved); moved == 0 {
				t.Error("the import moved none of the waiting jobs")
			}
			t.Logf("%s", shadowTool(t, page, "status"))
			harness.Eventually(t, func() string {
				if n := readyOf(t, b, cutOverQueue); n > 0 {
					return fmt.Sprintf("%d jobs are left at the broker", n)
				}
				return ""
			})
		})
	}
}

// While the broker is down, submissions are refused. What it has acknowledged survives.
func TestABrokerThatIsKilledAfterTheCutOverLosesNothing(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	for _, c := range cutOvers {
		t.Run(c.protocol, func(t *testing.T) {
			t.Parallel()
			b, to := c.start(t)
			address, _ := c.upstream(t, b)
			_, listen, _ := startShadow(t, c.protocol, address, "--to", to, "--cut-over", cutOverQueue)
			load := startCutOverLoad(t, &c, listen, true)
			time.Sleep(time.Second)
			b.Crash()
			harness.Eventually(t, func() string {
				if load.refusals() == 0 {
					return "no submission was refused"
				}
				return ""
			})
			b.Restart()
			time.Sleep(time.Second)
			load.check(2, func() int { // what workers had when the broker was killed
				if c.protocol != "faktory" {
					return 0
				}
				return queueOf(t, b, cutOverQueue).Leased // Faktory's reservations outlive connections
			})
		})
	}
}

// cutOverApps are the queues of the apps that are recorded elsewhere.
var cutOverApps = map[string]string{
	"gearman command": "rev", "Gearman in Perl": "reverse,fails,progress", "Faktory in Go": "numbers",
	"beanstalk": "mail",
}

// The same apps find no difference at a proxy that may cut their queues over, nor once it has.
func TestAppsGoOnAfterACutOver(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	for _, app := range recordings {
		queues := cutOverApps[app.name]
		if queues == "" {
			continue
		}
		t.Run(app.name, func(t *testing.T) {
			t.Parallel()
			at := slices.IndexFunc(cutOvers, func(c cutOverCase) bool { return c.protocol == app.protocol })
			_, to := cutOvers[at].start(t)
			_, listen, page := startShadow(t, app.protocol, app.upstream(t), "--to", to)
			app.app(t, listen)
			harness.Eventually(t, func() string {
				if r := shadowReport(t, page); r.Different > 0 || r.Dropped != "" || r.Equal < app.least {
					return fmt.Sprintf("%+v", r)
				}
				return ""
			})
			_, listen, page = startShadow(t, app.protocol, app.upstream(t), "--to", to)
			shadowTool(t, page, append([]string{"cut-over"}, strings.Split(queues, ",")...)...)
			app.app(t, listen)
			harness.Eventually(t, func() string {
				if r := shadowReport(t, page); r.Dropped == "" {
					return fmt.Sprintf("after the cut-over: %+v", r)
				}
				return ""
			})
		})
	}
}

// shadowReport is the report of a shadow that runs.
func shadowReport(t *testing.T, page string) (r comparison) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+page+"/report", http.NoBody)
	check(t, err)
	resp, err := http.DefaultClient.Do(req)
	check(t, err)
	defer func() { _ = resp.Body.Close() }() // it has been read
	check(t, json.NewDecoder(resp.Body).Decode(&r))
	return r
}

// queueOf counts the jobs of a queue.
func queueOf(t *testing.T, b *harness.Broker, queue string) (q struct{ Ready, Leased int }) {
	t.Helper()
	status, text, err := b.Get("/api/v1/queues/" + queue)
	check(t, err)
	if status == 200 {
		check(t, json.Unmarshal([]byte(text), &q))
	}
	return q
}
