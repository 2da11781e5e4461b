package integration_test

import (
	"testing"

	"broker/integration/harness"
)

// A client that waits for a reply when the server stops receives one, in one write, and then the end of the connection.
func TestCommandsThatWaitAreAnsweredWhenTheServerStops(t *testing.T) {
	t.Parallel()
	b := start(t)
	id := newID()
	worker := dialRaw(t, b.Workq)
	worker.send("add " + id + " kept 60000 600000 0\r\n\r\n")
	worker.want("+OK")
	var blocked []*raw
	for _, command := range []string{
		"lease nothing 60000", "result " + id + " 60000", "run " + newID() + " never 60000 60000 0\r\n",
	} {
		c := dialRaw(t, b.Workq)
		c.send(command + "\r\n")
		blocked = append(blocked, c)
	}
	// A reply on this connection shows that the input of the others was read before.
	wantClients(t, worker, 1+len(blocked))
	harness.Eventually(t, func() string {
		worker.send("inspect queue never\r\n")
		if worker.line() != "+OK 1" {
			return "no run yet"
		}
		for range 3 {
			worker.line()
		}
		return ""
	})
	fetching := dialRawFaktory(t, b, `{"v":2}`)
	fetching.send("QUEUE RESUME nothing\r\nFETCH nothing\r\n") // read together
	fetching.want("+OK")
	if code, _ := b.Terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, c := range blocked {
		c.want("-SERVER-ERROR Shutting down")
		c.wantEnd()
	}
	worker.wantEnd()
	fetching.want("$-1")
	fetching.wantEnd()
}
