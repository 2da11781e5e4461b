// Package harness runs the built broker for a test: on free ports, with its data and logs in the test's own folder; it
// kills it, restarts it on the same data and ports, and prints its log when the test fails. It also runs the programs
// of others that the tests drive the broker with, and says what is missing where one is not installed.
//
// With BROKER_REFERENCE=1 in the environment the servers are gearmand and Faktory in place of the broker. Tests that
// stay within what those can do then say whether the tests themselves are right; the others are left out.
package harness

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"broker/integration/server"
)

// Patience is how long a test waits for something that must come. It is long because the machine may be busy; a test
// that passes never waits that long.
const Patience = 2 * time.Minute

// Options say how to start the broker. The zero value is the default configuration.
type Options struct {
	Durability string   // empty: the broker's own default
	Password   string   // empty: none
	Config     string   // text of a configuration file; empty: none
	Args       []string // further arguments of serve
	Env        []string // added to the environment
}

// Broker is a broker that a test started; it ends with the test.
type Broker struct {
	*server.BrokerServer

	Password string
	t        testing.TB
}

// built holds what is compiled once per test process.
var built struct {
	sync.Mutex // guards the rest
	dir        string
	programs   map[string]string
}

// Main is for TestMain: it runs the tests and removes what was built for them.
func Main(m *testing.M) int {
	defer func() {
		if built.dir != "" {
			_ = os.RemoveAll(built.dir) // a leftover in the temporary folder hurts nobody
		}
	}()
	return m.Run()
}

// program builds something once and answers its path.
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

// Binary is the path of the broker's program.
func Binary(t testing.TB) string {
	t.Helper()
	return program(t, "broker", server.Broker)
}

// Program builds a package of this module, such as "./integration/clients/goworker".
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
	b := Prepare(t, o)
	if err := b.BrokerServer.Start(); err != nil {
		t.Fatal(err)
	}
	return b
}

// Prepare lays out a broker that is not running yet.
func Prepare(t testing.TB, o Options) *Broker {
	t.Helper()
	OursOnly(t)
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
		b.Process.Kill()
		if t.Failed() {
			t.Logf("the broker's log (ended before the test did: %v):\n%s", ended, b.Output())
		}
	})
	return b
}

// Crash ends the broker as a power cut of the process would: SIGKILL.
func (b *Broker) Crash() {
	b.t.Helper()
	if b.Exited() {
		b.t.Fatalf("the broker had ended before it was killed:\n%s", b.Tail())
	}
	b.Process.Kill()
}

// Restart starts the broker again on its data and ports.
func (b *Broker) Restart() {
	b.t.Helper()
	if err := b.BrokerServer.Start(); err != nil {
		b.t.Fatal(err)
	}
}

// Terminate sends SIGTERM and answers the exit code and how long the end took.
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
	return code, time.Since(begin)
}

// CheckDuration fails the test if something took longer than limit, in make nightly only: elsewhere the machine may be busy.
func CheckDuration(t testing.TB, what string, took, limit time.Duration) {
	t.Helper()
	if Nightly && took > limit {
		t.Errorf("%s took %v, more than %v", what, took, limit)
	}
}

// FaktoryURL is what Faktory's libraries read from the environment.
func (b *Broker) FaktoryURL() string {
	if b.Password == "" {
		return "tcp://" + b.Faktory
	}
	return fmt.Sprintf("tcp://:%s@%s", b.Password, b.Faktory)
}

// Eventually waits until check answers an empty string; what it answered last is why the test failed.
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
