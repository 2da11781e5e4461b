package workq

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

const mebi = 1 << 20

// addOf returns the command that adds the n-th job to q with a body of size bytes, and the body.
func addOf(n, size int) (request, body []byte) {
	body = bytes.Repeat([]byte{'a' + byte(n%26)}, size)
	return fmt.Appendf(nil, "add %s q 1000 60000 %d\r\n%s\r\n", idOf(n), size, body), body
}

func TestLargestBodyThroughEveryCommand(t *testing.T) {
	t.Parallel()
	s := setup(t)
	c := s.Dial("client")
	request, body := addOf(1, mebi)
	c.SendIn(len(request), request)
	c.Want("+OK\r\n")
	s.Restart()
	c = s.Dial("after the restart")
	c.Send("lease q 0\r\n")
	c.WantBytes(fmt.Appendf(nil, "+OK 1\r\n%s q 1000 %d\r\n%s\r\n", idOf(1), mebi, body))
	c.SendBytes(fmt.Appendf(nil, "complete %s %d\r\n%s\r\nresult %s 0\r\n", idOf(1), mebi, body, idOf(1)))
	c.WantBytes(fmt.Appendf(nil, "+OK\r\n+OK 1\r\n%s 1 %d\r\n%s\r\n", idOf(1), mebi, body))
}

func TestLargeBodyInSmallPieces(t *testing.T) {
	t.Parallel()
	c := setup(t).Dial("client")
	request, _ := addOf(1, mebi)
	c.SendIn(1460, request)
	c.Want("+OK\r\n")
}

func TestBodyAboveTheLimitIsDiscardedAsItArrives(t *testing.T) {
	t.Parallel()
	for _, size := range []int{mebi + 1, 5 * mebi} {
		for _, end := range []string{"\r\n", ""} {
			s := setup(t)
			c := s.Dial("client")
			request, _ := addOf(1, size)
			request = append(bytes.TrimSuffix(request, []byte("\r\n")), end...)
			c.SendIn(64<<10, request)
			c.SendIn(1, []byte("inspect queue q\r\n"))
			c.Want("-CLIENT-ERROR Invalid payload size\r\n-NOT-FOUND\r\n")
			c.SendIn(len(request), append(request, "inspect queue q\r\n"...))
			c.Want("-CLIENT-ERROR Invalid payload size\r\n-NOT-FOUND\r\n")
		}
	}
}

func TestLineWithoutEndClosesTheConnection(t *testing.T) {
	t.Parallel()
	const limit = mebi + 10_000
	for _, c := range []struct {
		name, in, want string
	}{
		{"no end", strings.Repeat("x", limit+1), tooLong},
		{"an end too late", strings.Repeat("x", limit-1) + "\r\n", tooLong},
		{"an end just in time", strings.Repeat("x", limit-2) + "\r\n", ""},
		{"a body behind it", "add " + idOf(1) + strings.Repeat(" ", 10_000) + "q 1 1 1048576\r\n", tooLong},
	} {
		for _, step := range []int{len(c.in), 64 << 10, 65_537} {
			client := setup(t).Dial(c.name)
			client.SendIn(step, []byte(c.in))
			if c.want == "" {
				client.Want(badCommand)
				client.WantSilence()
				continue
			}
			client.Want(c.want)
			client.WantClosed()
		}
	}
}

// Each name counts once, so the same name may be repeated up to the length of a command.
func TestNumberOfNamesOfALeaseIsLimited(t *testing.T) {
	t.Parallel()
	names := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, " n%d", i)
		}
		return b.String()
	}
	s := setup(t)
	c := s.Dial("client")
	send := func(line string) { c.SendIn(len(line), []byte(line)) }
	send("lease" + names(maxNames+1) + " 0\r\n")
	c.Want(badArgs)
	send("lease" + strings.Repeat(" q", 500_000) + " 0\r\n")
	c.Want(timedOut)
	send("lease" + names(maxNames) + " 60000\r\n")
	send(fmt.Sprintf("inspect queue n%d\r\n", maxNames-1))
	request, _ := addOf(1, 1)
	other := s.Dial("other")
	other.SendBytes(bytes.Replace(request, []byte(" q "), fmt.Appendf(nil, " n%d ", maxNames-1), 1))
	other.Want(okLine)
	c.Want(fmt.Sprintf("+OK 1\r\n%s n%d 1000 1\r\nb\r\n+OK 1\r\nn%d 2\r\nready-len 0\r\nscheduled-len 0\r\n",
		idOf(1), maxNames-1, maxNames-1))
}

func TestLargeAnswersArePaused(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		return New(access.Unrestricted(b, core.Workq), Options{Options: frontends.Options{MaxOutputBytes: mebi}})
	})
	c := s.Dial("client")
	const jobs, size, times = 10, 64 << 10, 10
	want := appendOK(nil, jobs)
	for n := range jobs {
		request, body := addOf(n, size)
		c.SendIn(len(request), request)
		c.Want(okLine)
		want = fmt.Appendf(want, "%s 12\r\nname q\r\nttr 1000\r\nttl 60000\r\npayload-size %d\r\npayload %s\r\n"+
			"max-attempts 0\r\nattempts 0\r\nmax-fails 0\r\nfails 0\r\npriority 0\r\nstate 0\r\n"+
			"created 2030-01-01T00:00:00Z\r\n", idOf(n), size, body)
	}
	pipelined := []byte(strings.Repeat("inspect jobs q 0 100\r\n", times))
	c.SendIn(len(pipelined), pipelined)
	c.WantBytes(bytes.Repeat(want, times))
	c.WantSilence()
}

func TestConfiguredBodyLimit(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		return New(access.Unrestricted(b, core.Workq), Options{Options: frontends.Options{MaxBodyBytes: 10}})
	})
	c := s.Dial("client")
	for n, want := range map[int]string{10: okLine, 11: badPayload} {
		request, _ := addOf(n, n)
		c.SendBytes(request)
		c.Want(want)
	}
	c.Send("inspect queue other\r\n")
	c.Want(notFound)
}
