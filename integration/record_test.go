package integration_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/harness"
	"broker/integration/server"
	"broker/integration/workqclient"
)

// comparison is what broker replay -o json and the report of broker shadow say.
type comparison struct {
	Requests, Equal, Different, Unknown int
	Pushes                              int
	Dropped                             string
	Gaps                                []struct{ Why string }
	Jobs                                struct {
		Accepted   int
		Delivered  int
		OnlyServer int      `json:"only_server"`
		FromBroker []string `json:"from_broker"`
	}
	Differences []struct{ Verb, Request, Server, Broker string }
}

// recorded is an app whose conversation with a server is recorded, and played against the broker.
type recorded struct {
	name     string
	protocol string
	// upstream starts the server and returns its address.
	upstream func(t *testing.T) string
	// app uses the server at an address.
	app func(t *testing.T, address string)
	// to is the address of the protocol at the broker.
	to func(b *harness.Broker) string
	// least is how many replies must be equal at least.
	least int
}

// startOwn starts a broker as the server that is recorded, for protocols whose servers are not on this machine.
func startOwn(to func(b *harness.Broker) string) func(t *testing.T) string {
	return func(t *testing.T) string { return to(start(t)) }
}

func gearmanOf(b *harness.Broker) string { return b.Gearman }

var recordings = []recorded{
	{"gearman command", "gearman", upstreamGearmand, func(t *testing.T, address string) {
		harness.Need(t, "gearman")
		host, port := server.Split(address)
		worker := harness.Spawn(t,
			harness.Command{Argv: []string{"gearman", "-h", host, "-p", port, "-w", "-f", "rev", "--", "rev"}})
		for i := range 10 {
			r := harness.Exec(t, harness.Command{
				Argv: []string{"gearman", "-h", host, "-p", port, "-f", "rev"}, Stdin: fmt.Sprintf("abc%d\n", i),
			})
			equal(t, "result", strings.TrimSpace(r.Stdout), fmt.Sprintf("%dcba", i))
		}
		worker.Kill()
	}, gearmanOf, 20},
	{"Gearman in Perl", "gearman", upstreamGearmand, func(t *testing.T, address string) {
		needPerl(t)
		b := &harness.Broker{BrokerServer: &server.BrokerServer{Gearman: address}}
		perlWorker(t, b, "reverse=reverse", "fails=fail", "progress=progress")
		equal(t, "result", string(only(t, perlClient(t, b, "hello", "do", "high", "reverse"), "complete").Data),
			"olleh")
		equal(t, "events", kinds(perlClient(t, b, "x", "do", "normal", "progress")),
			"status data warning data status complete")
		equal(t, "events", kinds(perlClient(t, b, "x", "do", "normal", "fails")), "fail")
	}, gearmanOf, 6},
	{"Gearman in PHP", "gearman", upstreamGearmand, func(t *testing.T, address string) {
		harness.Need(t, "php", "php-gearman")
		b := &harness.Broker{BrokerServer: &server.BrokerServer{Gearman: address}}
		phpWorker(t, b, "reverse=reverse", "fails=fail", "breaks=exception", "progress=progress")
		equal(t, "result", string(only(t, phpClient(t, b, "hello", "do", "high", "reverse"), "complete").Data), "olleh")
		only(t, phpClient(t, b, "x", "do", "normal", "progress"), "complete")
		equal(t, "events", kinds(phpClient(t, b, "x", "do", "low", "fails")), "fail")
		phpClient(t, b, "x", "do", "normal", "breaks")
	}, gearmanOf, 8},
	{"Faktory in Go", "faktory", func(t *testing.T) string {
		address, _ := startFaktorySource(t, &harness.Broker{BrokerServer: &server.BrokerServer{}})
		return address
	}, recordFaktory, func(b *harness.Broker) string { return b.Faktory }, 80},
	{"beanstalk", "beanstalk", upstreamBeanstalkd, recordBeanstalk, nil, 120},
	// beanstalkd sometimes loses the end of a ttr, and the client then waits in vain.
	{
		"pheanstalk", "beanstalk", upstreamBeanstalkd,
		published("php-pheanstalk", "php", "php/pheanstalk.php", "HOST", "PORT", "ttr"), nil, 80,
	},
	{"Laravel", "beanstalk", upstreamBeanstalkd, published("php-laravel", "php", "php/laravel.php", "HOST",
		"PORT"), nil, 30},
	{"jackd", "beanstalk", upstreamBeanstalkd, published("node", "node", "node/jackd.js", "HOST", "PORT"), nil, 40},
	{
		"Qless in Python", "qless", upstreamQless,
		published("python3-redis", "/usr/bin/python3", "python/redis_qless.py", "ADDR"), nil, 300,
	},
	{
		"Workq in Go", "workq", startOwn(func(b *harness.Broker) string { return b.Workq }),
		func(t *testing.T, address string) {
			c, err := workqclient.Dial(address)
			check(t, err)
			defer func() { _ = c.Close() }() // every command was answered
			for i := range 20 {
				job := wqJob("ping", fmt.Sprint(i))
				check(t, c.Add(job))
				leased, err := c.Lease(time.Second, "ping")
				check(t, err)
				equal(t, "job", leased.ID, job.ID)
				check(t, c.Complete(job.ID, []byte("pong")))
			}
		}, func(b *harness.Broker) string { return b.Workq }, 50,
	},
}

// published runs a program on a published client.
func published(need, program, script string, args ...string) func(t *testing.T, address string) {
	return func(t *testing.T, address string) {
		t.Helper()
		if harness.Need(t, filepath.Base(program), need); need == "node" {
			harness.NeedNode(t)
		}
		host, port := server.Split(address)
		argv := []string{program, harness.Script(t, script)}
		for _, arg := range args {
			argv = append(argv, strings.NewReplacer("HOST", host, "PORT", port, "ADDR", address).Replace(arg))
		}
		harness.Run(t, harness.Command{Argv: argv})
	}
}

func upstreamBeanstalkd(t *testing.T) string {
	address, _ := startBeanstalkSource(t, nil)
	return address
}

func upstreamQless(t *testing.T) string {
	_, address := startQless(t)
	return address
}

func upstreamGearmand(t *testing.T) string {
	address, _ := startGearmandSource(t, &harness.Broker{BrokerServer: &server.BrokerServer{}})
	return address
}

// recordFaktory pushes jobs, works on them and fails some.
func recordFaktory(t *testing.T, address string) {
	c := dialSourceFaktory(t, address)
	for i := range 30 {
		j := faktory.NewJob("Number", i)
		j.Queue = "numbers"
		check(t, c.Push(j))
		var got *faktory.Job
		for began := time.Now(); got == nil && time.Since(began) < harness.Patience; {
			var err error // a busy server may have no job in time
			got, err = c.Fetch("other", "numbers")
			check(t, err)
		}
		equal(t, "job", got.Jid, j.Jid)
		if i%10 == 0 {
			check(t, c.Fail(got.Jid, fmt.Errorf("no luck"), nil))
		} else {
			check(t, c.Ack(got.Jid))
		}
	}
}

// recordBeanstalk has one producer and two workers that wait.
func recordBeanstalk(t *testing.T, address string) {
	const jobs = 40
	done := make(chan error, 2)
	for range 2 {
		w := dialBeanstalk(t, address)
		w.say("WATCHING", "watch mail")
		go func() {
			for range jobs / 2 {
				if _, err := fmt.Fprint(w, "reserve\r\n"); err != nil {
					done <- err
					return
				}
				line, err := w.r.ReadString('\n')
				if err == nil {
					_, err = w.r.ReadString('\n')
				}
				if err == nil {
					_, err = fmt.Fprintf(w, "delete %s\r\n", strings.Fields(line)[1])
				}
				if err == nil {
					_, err = w.r.ReadString('\n')
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	p := dialBeanstalk(t, address)
	p.say("USING", "use mail")
	for i := range jobs {
		p.put(1024, 0, 60, fmt.Sprint("body ", i))
	}
	check(t, <-done)
	check(t, <-done)
	p.say("NOT_FOUND", "peek-ready")
	p.put(1, 0, 60, "left")
	p.say("FOUND", "peek-ready")
}

// The broker replies to each recorded app as the server did that the app was recorded with.
func TestRecordedAppsGetTheSameReplies(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	for _, app := range recordings {
		t.Run(app.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "app.rec")
			listen, err := server.FreeAddr()
			check(t, err)
			rec := harness.Spawn(t, harness.Command{Argv: []string{
				harness.Binary(t), "record", "--protocol", app.protocol, "--upstream", app.upstream(t), "--listen",
				listen, "--file", file,
			}})
			rec.AwaitLines(1, func(line string) bool { return strings.HasPrefix(line, "recording ") })
			app.app(t, listen)
			check(t, rec.Signal(syscall.SIGINT))
			_, err = rec.Wait(harness.Patience)
			check(t, err)
			info, err := os.Stat(file)
			check(t, err)
			equal(t, "mode", info.Mode().Perm(), os.FileMode(0o600))

			// A broker on a busy machine may reply later than the comparison waits; a difference is there each time.
			var r comparison
			for try, same := 0, false; !same; try++ {
				if try == 3 {
					t.Fatalf("%+v", r)
				}
				r = replayed(t, file, app.broker(t))
				same = r.Different == 0 && r.Dropped == "" && r.Equal >= app.least
			}
		})
	}
}

// broker starts a broker to which the recording is played, and returns its address.
func (r *recorded) broker(t *testing.T) string {
	t.Helper()
	switch {
	case r.to != nil:
		return r.to(start(t))
	case r.protocol == "qless":
		return upstreamQless(t)
	}
	return startBeanstalkd(t)
}

// replayed plays a recording and returns the report.
func replayed(t *testing.T, file, to string) (r comparison) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), harness.Binary(t), "replay", file, "--to", to, "-o", "json").Output()
	if len(out) == 0 {
		check(t, err)
	}
	check(t, json.Unmarshal(out, &r))
	return r
}
