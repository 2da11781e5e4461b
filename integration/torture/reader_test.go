//go:build nightly

package torture_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

// submitMany submits jobs of one function, many in flight, each with a long unique id.
func submitMany(t testing.TB, b *harness.Broker, function string, jobs int, body string) {
	t.Helper()
	c := harness.DialGearman(t, b)
	defer func() { _ = c.Close() }() // every reply was read
	most := max(1, min(1000, 4<<20/(len(body)+1)))
	for done := 0; done < jobs; {
		batch := min(most, jobs-done)
		var in []byte
		for i := range batch {
			in = gearmanclient.Append(in, gearmanclient.SubmitJobBg, function, fmt.Sprintf("%060d", done+i), body)
		}
		check(t, c.Write(in))
		for range batch {
			_, err := c.Expect(gearmanclient.JobCreated, harness.Patience)
			check(t, err)
		}
		done += batch
	}
}

// A slow reader receives the whole of a listing that is far larger than the output limit and the kernel's buffers.
func TestSlowReaderReceivesALongListing(t *testing.T) {
	harness.BrokerOnly(t) // not parallel: it measures memory and time
	b := harness.Start(t, harness.Options{Config: "[limits]\noutput_bytes = \"2 MiB\"\n"})
	const jobs = 300_000
	submitMany(t, b, "listed", jobs, "x")
	p := newProbe(t, b)
	c := dial(t, b.Gearman)
	check(t, c.(*net.TCPConn).SetReadBuffer(32<<10))
	lines := 0
	p.during(fmt.Sprintf("a slow reader of a listing of %d jobs", jobs), 48*mib, func() {
		_, err := io.WriteString(c, "show unique jobs\n")
		check(t, err)
		check(t, c.SetReadDeadline(time.Now().Add(5*time.Minute)))
		time.Sleep(2 * time.Second) // output that is not throttled would accumulate
		in := bufio.NewReaderSize(c, 64<<10)
		for ; ; lines++ {
			line, err := in.ReadSlice('\n')
			if err != nil {
				t.Errorf("after %d lines: %v", lines, err)
				return
			}
			if bytes.Equal(line, []byte(".\n")) {
				return
			}
			if lines%10_000 == 0 {
				time.Sleep(50 * time.Millisecond)
			}
		}
	})
	if lines < jobs {
		t.Errorf("%d lines of %d jobs", lines, jobs)
	}
}

// Clients whose small requests have large replies, which they never read, are throttled: each costs a bounded amount
// of output, and none is cut off.
func TestClientsThatNeverReadAreThrottled(t *testing.T) {
	harness.BrokerOnly(t) // not parallel: it measures memory and time
	b := harness.Start(t, harness.Options{})
	submitMany(t, b, "listed", 100_000, "x")
	submitMany(t, b, "large", 400, strings.Repeat("x", 256<<10))
	p := newProbe(t, b)
	grabs := gearmanclient.Append(nil, gearmanclient.CanDo, "large")
	for range 400 {
		grabs = gearmanclient.Append(grabs, gearmanclient.GrabJob)
	}
	asks := []struct{ address, protocol, text string }{
		{b.Gearman, "gearman", strings.Repeat("show jobs\n", 100)},
		{b.Gearman, "gearman", strings.Repeat("status\n", 1_000_000)},
		{b.Gearman, "gearman", string(grabs)},
		{b.Workq, "workq", strings.Repeat("inspect jobs large 0 10\r\n", 1000)},
		{b.Faktory, "faktory", "HELLO {\"v\":2,\"wid\":\"slow\"}\r\n" + strings.Repeat("FETCH large\r\n", 200)},
	}
	const clients, each = 10, 8 * mib
	p.during(fmt.Sprintf("%d clients with large unread replies", clients), clients*each, func() {
		var all sync.WaitGroup
		for n := range clients {
			ask := asks[n%len(asks)]
			c := dial(t, ask.address)
			all.Go(func() { // ends when everything is sent, or the broker stops reading
				_ = c.SetWriteDeadline(time.Now().Add(3 * time.Second))
				_, _ = io.WriteString(c, ask.text) // a throttled client cannot write everything
			})
		}
		all.Wait()
		time.Sleep(time.Second)
	})
	want := map[string]int{"gearman": 1} // the bystander
	for n := range clients {
		want[asks[n%len(asks)].protocol]++
	}
	for protocol, n := range want {
		if got := open(t, b, protocol); got != n {
			t.Errorf("%d connections of %s are open, not %d", got, protocol, n)
		}
	}
}
