// Package harness runs the built broker for a test: on free ports, with its data and log in a temporary folder. It can
// kill the broker and restart it on the same data and ports, and prints the log when the test fails. It also runs the
// third-party clients of the tests, and reports which package to install if one is missing.
//
// With BROKER_REFERENCE=1 the servers are gearmand and Faktory instead of the broker: that verifies the tests
// themselves. Tests of features that those servers do not have are skipped. With BROKER_FOLLOWER=1 each test gets a
// node that follows, of a cluster of three, instead of a broker that stands alone.
package harness

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"broker/integration/server"
)

// Patience is how long a test waits for an event that must happen. It is long because the machine may be busy; a
// passing test never waits that long.
const Patience = 2 * time.Minute

// Options of the broker. The zero value is the default configuration.
type Options struct {
	Durability string   // empty: the default
	Password   string   // empty: none
	Config     string   // content of a settings file; empty: no file
	Args       []string // more arguments of serve
	Env        []string // added to the environment
}

// Broker is a broker that runs until the test ends.
type Broker struct {
	*server.BrokerServer

	Password string
	t        testing.TB
}

// built holds the programs that are compiled once per test process.
var built struct {
	sync.Mutex // guards the rest
	dir        string
	programs   map[string]string
}

// Main runs the tests and removes the programs that were built. TestMain calls it.
func Main(m *testing.M) int {
	go endWithParent(os.Getppid()) // ends with this process
	// The broker closes connections that are idle for ten seconds without a login, perhaps when a request is coming.
	http.DefaultTransport.(*http.Transport).IdleConnTimeout = idleFor
	defer func() {
		if built.dir != "" {
			_ = os.RemoveAll(built.dir) // leftovers in the temporary folder do no harm
		}
	}()
	return m.Run()
}

// idleFor is how long a connection of HTTP may be idle and be used again.
const idleFor = 5 * time.Second

// leastParallel is how many tests run at once, also on two processors, if they wait most of the time.
const leastParallel = 4

// MostlyWait says that the tests wait most of the time: for heartbeats, ends of leases, programs. It is called before
// Main.
func MostlyWait() {
	parallel := flag.Lookup("test.parallel")
	if n, err := strconv.Atoi(parallel.Value.String()); err == nil && n < leastParallel {
		_ = parallel.Value.Set(strconv.Itoa(leastParallel)) // a number
	}
}

// endWithParent ends this process, and by that its servers, when the go command that runs it was killed.
func endWithParent(parent int) {
	for os.Getppid() == parent {
		time.Sleep(time.Second)
	}
	_, _ = fmt.Fprintln(os.Stderr, "the program that ran the tests has ended")
	os.Exit(1)
}

// program builds a program once and returns its path.
func program(t testing.TB, name string, build func(dir string) (string, error)) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "broker-integration-")
		if err != nil {
			t.Fatal(err)
		}
		built.dir, built.programs = dir, make(map[string]string)
	}
	path, ok := built.programs[name]
	if !ok {
		var err error
		if path, err = build(built.dir); err != nil {
			t.Fatal(err)
		}
		built.programs[name] = path
	}
	return path
}

// Binary returns the path of the broker.
func Binary(t testing.TB) string {
	t.Helper()
	return program(t, "broker", server.Broker)
}

// BinaryWith builds the broker with flags for the linker.
func BinaryWith(t testing.TB, linkerFlags string) string {
	t.Helper()
	return program(t, "broker "+linkerFlags, func(dir string) (string, error) {
		own, err := os.MkdirTemp(dir, "with-")
		if err != nil {
			return "", err
		}
		return server.Build("cmd/broker", own, "-ldflags", linkerFlags)
	})
}

// NATS builds the NATS server.
func NATS(t testing.TB) string {
	t.Helper()
	return program(t, "nats-server", server.BuildNATS)
}

// Collector builds the program that decodes spans as an OpenTelemetry collector does.
func Collector(t testing.TB) string {
	t.Helper()
	return program(t, "collector", server.BuildCollector)
}

// Program builds a package in a folder of the project, such as "integration/clients/goworker".
func Program(t testing.TB, pkg string) string {
	t.Helper()
	return program(t, pkg, func(dir string) (string, error) { return server.Build(pkg, dir) })
}

// Start starts a broker and waits until it is ready.
func Start(t testing.TB, o Options) *Broker {
	t.Helper()
	if reference() {
		return startReference(t, o)
	}
	if throughFollower() {
		return startFollower(t, o)
	}
	b := Prepare(t, o)
	b.Restart()
	return b
}

// Prepare creates a broker without starting it.
func Prepare(t testing.TB, o Options) *Broker {
	t.Helper()
	BrokerOnly(t)
	s, err := server.NewBroker(t.TempDir(), server.BrokerOptions{
		Binary: Binary(t), Durability: o.Durability, Password: o.Password, Config: o.Config, Args: o.Args, Env: o.Env,
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &Broker{BrokerServer: s, Password: o.Password, t: t}
	t.Cleanup(func() {
		if b.Process == nil {
			return
		}
		ended := b.Exited()
		if !ended {
			b.checkPunctual()
		}
		b.Process.Kill()
		if t.Failed() {
			t.Logf("log of the broker (exited before the test: %v):\n%s", ended, b.Output())
		}
	})
	return b
}

// lateReplies matches a count of replies that left late because nothing had woken their connection.
var lateReplies = regexp.MustCompile(`(?m)^broker_late_replies_total\S* [^0].*`)

// checkPunctual fails the test if the broker forgot to wake a connection whose reply was durable. A broker whose
// metrics the test may not read, because of their port or their rights, is not asked.
func (b *Broker) checkPunctual() {
	status, metrics, err := b.Get("/metrics")
	if err != nil || status != http.StatusOK {
		return
	}
	for _, late := range lateReplies.FindAllString(metrics, -1) {
		b.t.Errorf("a reply waited although its commit was durable: %s", late)
	}
}

// liveBytes matches the live heap in a text profile of the heap.
var liveBytes = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)$`)

// LiveBytes are the bytes of the broker's heap that are still in use, after two collections of garbage, since pools
// outlive one. It needs the setting http.profiling.
func (b *Broker) LiveBytes() int64 {
	b.t.Helper()
	const heap = "/debug/pprof/heap?gc=1&debug=1"
	if _, _, err := b.Get(heap); err != nil {
		b.t.Fatal(err)
	}
	status, profile, err := b.Get(heap)
	found := liveBytes.FindStringSubmatch(profile)
	if err != nil || status != http.StatusOK || found == nil {
		b.t.Fatalf("profile of the heap: %d %.80q %v", status, profile, err)
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// Crash kills the broker with SIGKILL.
func (b *Broker) Crash() {
	b.t.Helper()
	if b.Exited() {
		b.t.Fatalf("the broker exited before it was killed:\n%s", b.Tail())
	}
	b.Process.Kill()
}

// qlessServes is in the log once clients of Qless no longer get LOADING, which is after the broker is ready.
const qlessServes = "qless serves its clients"

// Restart starts the broker again on its data and ports, and waits until it serves the clients of all of them.
func (b *Broker) Restart() {
	b.t.Helper()
	served := 0
	if b.Process != nil {
		served = strings.Count(b.Output(), qlessServes)
	}
	if err := b.BrokerServer.Start(); err != nil {
		b.t.Fatal(err)
	}
	if !slices.Contains(b.Argv(), "--qless") {
		return
	}
	Eventually(b.t, func() string {
		if strings.Count(b.Output(), qlessServes) == served {
			return "Qless does not serve its clients:\n" + b.Tail()
		}
		return ""
	})
}

// slowStop is what a broker says that ends with 1 because it has not stopped within its 4.5 seconds.
const slowStop = "shutdown did not finish within"

// slowStops counts the brokers that were slow to stop.
var slowStops atomic.Int32

// Terminate sends SIGTERM and returns the exit code and the duration of the shutdown. One broker of a test process may
// be slow to stop and counts as one that was not: a busy machine slows one, a fault slows many. In make nightly none
// may.
func (b *Broker) Terminate() (code int, took time.Duration) {
	b.t.Helper()
	begin := time.Now()
	if err := b.Signal(syscall.SIGTERM); err != nil {
		b.t.Fatal(err)
	}
	code, err := b.Wait(Patience)
	if err != nil {
		b.t.Fatal(err)
	}
	if code == 1 && !Nightly && strings.Contains(b.Tail(), slowStop) && slowStops.Add(1) == 1 {
		b.t.Logf("slow to stop:\n%s", b.Tail())
		code = 0
	}
	return code, time.Since(begin)
}

// CheckDuration reports an error if something took longer than limit, but only in make nightly: elsewhere the machine
// may be busy.
func CheckDuration(t testing.TB, what string, took, limit time.Duration) {
	t.Helper()
	if Nightly && took > limit {
		t.Errorf("%s took %v, more than %v", what, took, limit)
	}
}

// FaktoryURL is the URL that Faktory clients read from the environment.
func (b *Broker) FaktoryURL() string {
	if b.Password == "" {
		return "tcp://" + b.Faktory
	}
	return fmt.Sprintf("tcp://:%s@%s", b.Password, b.Faktory)
}

// Eventually waits until check returns an empty string. Its last result is the reason of a failure.
func Eventually(t testing.TB, check func() string) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	pause := 2 * time.Millisecond
	for {
		wrong := check()
		if wrong == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still not after %v: %s", Patience, strings.TrimSpace(wrong))
		}
		time.Sleep(pause)
		pause = min(2*pause, 100*time.Millisecond)
	}
}
