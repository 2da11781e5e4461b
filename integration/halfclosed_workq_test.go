package integration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/integration/harness"
)

// wantClients waits until that many clients are connected, including the one that asks.
func wantClients(t *testing.T, c *raw, n int) {
	t.Helper()
	harness.Eventually(t, func() string {
		c.send("inspect server\r\n")
		c.want("+OK 1", "server 3")
		active := c.line()
		c.line()
		c.line()
		if want := fmt.Sprintf("active-clients %d", n); active != want {
			return active + ", want " + want
		}
		return ""
	})
}

func TestWorkqHalfClosedClientGetsItsResult(t *testing.T) {
	t.Parallel()
	b := start(t)
	id := newID()
	worker := dialRaw(t, b.Workq)
	worker.send("add " + id + " q 60000 600000 0\r\n\r\n")
	worker.want("+OK")
	waiters := make([]*raw, 3)
	for i := range waiters {
		waiters[i] = dialRaw(t, b.Workq)
		waiters[i].send("result " + id + " " + []string{"60000", "300", "60000"}[i] + "\r\n")
		check(t, waiters[i].CloseWrite())
	}
	waiters[1].want("-TIMEOUT")
	waiters[1].wantEnd()
	check(t, waiters[2].SetLinger(0))
	check(t, waiters[2].Close()) // the broker notices that this one is gone
	wantClients(t, worker, 2)
	worker.send("complete " + id + " 4\r\ndone\r\n")
	worker.want("+OK")
	waiters[0].want("+OK 1", id+" 1 4", "done")
	waiters[0].wantEnd()
	wantClients(t, worker, 1)
}

// burst is more input than the broker holds behind a blocked command.
const burst = 12 << 20

// behind returns commands that fill a burst, and their replies.
func behind() (commands string, answers int) {
	command := "inspect queue " + strings.Repeat("n", 200) + "\r\n"
	return strings.Repeat(command, burst/len(command)), burst / len(command)
}

func TestWorkqCommandsBehindABlockedOneWait(t *testing.T) {
	t.Parallel()
	b := start(t)
	commands, answers := behind()
	c, other := dialRaw(t, b.Workq), dialRaw(t, b.Workq)
	for range 2 {
		id := newID()
		said := make(chan struct{})
		go func() { // ends when everything is written, or with the connection
			defer close(said)
			_, _ = c.Write([]byte("lease q 60000\r\n" + commands)) // a failure shows in the replies
		}()
		select {
		case <-said:
			t.Fatal("the broker has read all of it")
		case <-time.After(time.Second):
		}
		other.send("add " + id + " q 60000 600000 4\r\nbody\r\n")
		other.want("+OK")
		c.want("+OK 1", id+" q 60000 4", "body")
		for range answers {
			c.want("-NOT-FOUND")
		}
		<-said
	}
}

func TestWorkqClientThatIsNotReadTakesNoJobOnceItIsGone(t *testing.T) {
	t.Parallel()
	b := start(t)
	commands, _ := behind()
	other := dialRaw(t, b.Workq)
	for how, end := range endings {
		gone := dialRaw(t, b.Workq)
		gone.send("lease q 60000\r\n" + commands[:300_000])
		time.Sleep(300 * time.Millisecond) // until the broker stops reading
		end(gone)
		wantClients(t, other, 1)
		other.send("add " + newID() + " q 60000 600000 0\r\n\r\nlease q 0\r\n")
		if other.want("+OK"); other.line() != "+OK 1" {
			t.Fatalf("%s: the job is lost", how)
		}
		other.line()
		other.want("")
	}
}

func TestFaktoryPushesBehindAFetchWait(t *testing.T) {
	t.Parallel()
	b := start(t)
	c := dialRawFaktory(t, b, `{"v":2}`)
	const pushes = 100_000
	go func() { // ends when everything is written, or with the connection
		var all strings.Builder
		all.WriteString("FETCH nothing\r\n")
		for i := range pushes {
			fmt.Fprintf(&all, `PUSH {"jid":"behind-%08d","queue":"q","jobtype":"x","args":["%0900d"]}`+"\r\n", i, i)
		}
		_, _ = c.Write([]byte(all.String())) // a failure shows in the replies
	}()
	c.want("$-1")
	for range pushes {
		c.want("+OK")
	}
}
