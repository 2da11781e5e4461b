package integration_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	faktory "github.com/contribsys/faktory/client"
	"github.com/google/uuid"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/server"
)

// start starts a broker with the default configuration.
func start(t *testing.T) *harness.Broker {
	t.Helper()
	return harness.Start(t, harness.Options{})
}

// startShared is start for tests that the reference servers cannot pass.
func startShared(t *testing.T) *harness.Broker {
	t.Helper()
	harness.BrokerOnly(t)
	return start(t)
}

// Third-party clients. Workers take NAME=BEHAVIOUR and print a "job" event before they run a job.

func phpWorker(t *testing.T, b *harness.Broker, functions ...string) *harness.Child {
	t.Helper()
	host, port := server.Split(b.Gearman)
	return spawnReady(t, harness.Command{
		Argv: append([]string{"php", harness.Script(t, "php/worker.php"), host, port}, functions...),
	})
}

func perlWorker(t *testing.T, b *harness.Broker, functions ...string) *harness.Child {
	t.Helper()
	return spawnReady(t, harness.Command{
		Argv: append([]string{"perl", harness.Script(t, "perl/worker.pl"), b.Gearman}, functions...),
	})
}

func nodeWorker(t *testing.T, b *harness.Broker, functions ...string) *harness.Child {
	t.Helper()
	return spawnReady(t, harness.Command{
		Argv: append([]string{"node", harness.Script(t, "node/worker.js")}, functions...),
		Env:  []string{"FAKTORY_URL=" + b.FaktoryURL()},
	})
}

func goWorker(t *testing.T, b *harness.Broker, functions ...string) *harness.Child {
	t.Helper()
	return spawnReady(t, harness.Command{
		Argv: append([]string{harness.Program(t, "integration/clients/goworker")}, functions...),
		Env:  []string{"FAKTORY_URL=" + b.FaktoryURL()},
	})
}

func spawnReady(t *testing.T, c harness.Command) *harness.Child {
	t.Helper()
	child := harness.Spawn(t, c)
	child.Await("ready", 1)
	return child
}

func phpClient(t *testing.T, b *harness.Broker, body string, args ...string) []harness.Event {
	t.Helper()
	host, port := server.Split(b.Gearman)
	argv := append([]string{"php", harness.Script(t, "php/client.php"), host, port}, args...)
	return harness.ParseEvents(t, harness.Run(t, harness.Command{Argv: argv, Stdin: body}))
}

func perlClient(t *testing.T, b *harness.Broker, body string, args ...string) []harness.Event {
	t.Helper()
	argv := append([]string{"perl", harness.Script(t, "perl/client.pl"), b.Gearman}, args...)
	return harness.ParseEvents(t, harness.Run(t, harness.Command{Argv: argv, Stdin: body}))
}

func nodeClient(t *testing.T, b *harness.Broker, args ...string) []harness.Event {
	t.Helper()
	argv := append([]string{"node", harness.Script(t, "node/client.js")}, args...)
	env := []string{"FAKTORY_URL=" + b.FaktoryURL()}
	return harness.ParseEvents(t, harness.Run(t, harness.Command{Argv: argv, Env: env}))
}

// gearmanCLI runs the gearman command and returns its output.
func gearmanCLI(t *testing.T, b *harness.Broker, stdin string, args ...string) string {
	t.Helper()
	host, port := server.Split(b.Gearman)
	return harness.Run(t,
		harness.Command{Argv: append([]string{"gearman", "-h", host, "-p", port}, args...), Stdin: stdin})
}

func gearadmin(t *testing.T, b *harness.Broker, args ...string) harness.Result {
	t.Helper()
	host, port := server.Split(b.Gearman)
	return harness.Exec(t, harness.Command{Argv: append([]string{"gearadmin", "-h", host, "-p", port}, args...)})
}

// dialFaktory opens a connection for the duration of the test.
func dialFaktory(t *testing.T, b *harness.Broker) *faktory.Client {
	t.Helper()
	c, err := harness.OpenFaktory(b, harness.Patience)
	check(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// equal compares the printed forms of two values.
func equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if g, w := fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", want); g != w {
		t.Fatalf("%s:\n got %s\nwant %s", what, g, w)
	}
}

// kinds are the names of events, in order.
func kinds(events []harness.Event) string {
	names := make([]string, len(events))
	for i, e := range events {
		names[i] = e.Event
	}
	return strings.Join(names, " ")
}

// bodies are the data of events of one kind, sorted.
func bodies(events []harness.Event, kind string) []string {
	var found []string
	for _, e := range events {
		if e.Event == kind {
			found = append(found, string(e.Data))
		}
	}
	slices.Sort(found)
	return found
}

// only returns the single event of a kind.
func only(t testing.TB, events []harness.Event, kind string) harness.Event {
	t.Helper()
	i := slices.IndexFunc(events, func(e harness.Event) bool { return e.Event == kind })
	if i < 0 || slices.ContainsFunc(events[i+1:], func(e harness.Event) bool { return e.Event == kind }) {
		t.Fatalf("not exactly one %q in %q: %+v", kind, kinds(events), events)
	}
	return events[i]
}

// newID is an id that every protocol accepts.
func newID() string { return uuid.NewString() }

// statusRow is the row of a function in the status command; empty if there is none.
func statusRow(t testing.TB, b *harness.Broker, function string) string {
	t.Helper()
	c, err := gearmanclient.Dial(b.Gearman)
	check(t, err)
	defer func() { _ = c.Close() }() // nothing was written
	rows, err := c.AdminList("status")
	check(t, err)
	for _, row := range rows {
		if name, rest, _ := strings.Cut(row, "\t"); name == function {
			return strings.ReplaceAll(rest, "\t", " ")
		}
	}
	return ""
}

// awaitStatus waits until the status of a function is want: total, running, workers.
func awaitStatus(t testing.TB, b *harness.Broker, function, want string) {
	t.Helper()
	harness.Eventually(t, func() string {
		if got := statusRow(t, b, function); got != want {
			return fmt.Sprintf("status of %s is %q, not %q", function, got, want)
		}
		return ""
	})
}

// awaitTexts waits until a text, such as the metrics or the log, has all of these in it: the broker may count and log
// after it has replied.
func awaitTexts(t testing.TB, read func() string, wants ...string) {
	t.Helper()
	harness.Eventually(t, func() string {
		text := read()
		for _, want := range wants {
			if !strings.Contains(text, want) {
				return "there is no " + want
			}
		}
		return ""
	})
}

// isTimeout reports whether a read timed out.
func isTimeout(err error) bool {
	timeout := net.Error(nil)
	return errors.As(err, &timeout) && timeout.Timeout()
}

// submitMany submits jobs to a queue, a thousand in flight.
func submitMany(t *testing.T, b *harness.Broker, queue string, jobs int) {
	t.Helper()
	c := harness.DialGearman(t, b)
	const burst = 1000
	var packets []byte
	for range burst {
		packets = gearmanclient.Append(packets, gearmanclient.SubmitJobBg, queue, "", "0123456789abcdef")
	}
	for range jobs / burst {
		check(t, c.Write(packets))
		for range burst {
			_, err := c.Expect(gearmanclient.JobCreated, harness.Patience)
			check(t, err)
		}
	}
}
