package integration_test

import (
	"testing"

	"broker/integration/harness"
)

// Whoever waits for an answer when the server stops gets one, in one write, and then the end.
func TestCommandsThatWaitAreAnsweredWhenTheServerStops(t *testing.T) {
	t.Parallel()
	b := start(t)
	id := newID()
	worker := dialRaw(t, b.Workq)
	worker.say("add " + id + " kept 60000 600000 0\r\n\r\n")
	worker.want("+OK")
	var blocked []*raw
	for _, command := range []string{
		"lease nothing 60000", "result " + id + " 60000", "run " + newID() + " never 60000 60000 0\r\n",
	} {
		c := dialRaw(t, b.Workq)
		c.say(command + "\r\n")
		blocked = append(blocked, c)
	}
	// What is read of one connection behind the others has been read of them; this one is served until the end.
	wantClients(t, worker, 1+len(blocked))
	harness.Eventually(t, func() string {
		worker.say("inspect queue never\r\n")
		if worker.line() != "+OK 1" {
			return "no run yet"
		}
		for range 3 {
			worker.line()
		}
		return ""
	})
	fetching := dialRawFaktory(t, b, `{"v":2}`)
	fetching.say("QUEUE RESUME nothing\r\nFETCH nothing\r\n") // read together
	fetching.want("+OK")
	if code, _ := b.Terminate(); code != 0 {
		t.Errorf("ended with %d", code)
	}
	for _, c := range blocked {
		c.want("-SERVER-ERROR Shutting down")
		c.wantEnd()
	}
	worker.wantEnd()
	fetching.want("$-1")
	fetching.wantEnd()
}
