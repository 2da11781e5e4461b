package wiretap

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// tubeServer is a server with one tube that implements a part of the Beanstalk protocol.
type tubeServer struct {
	net.Listener
	spoil func(reply string) string // changes replies; nil: not
	heard chan<- string             // gets the requests, unless it is full; nil: not

	mu    sync.Mutex // guards next and ready
	next  int        // id of the next job
	ready []string   // "ID BODY"
}

func startTube(t testing.TB, first int, spoil func(string) string) *tubeServer {
	t.Helper()
	s := &tubeServer{Listener: listenOn(t, "127.0.0.1:0"), next: first, spoil: spoil}
	serveTube(t, s)
	return s
}

func listenOn(t testing.TB, address string) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func serveTube(t testing.TB, s *tubeServer) {
	t.Helper()
	t.Cleanup(func() { _ = s.Close() }) // nothing depends on it
	go func() {                         // ends with the listener
		for {
			c, err := s.Accept()
			if err != nil {
				return
			}
			go s.serve(c)
		}
	}()
}

func (s *tubeServer) serve(c net.Conn) {
	defer func() { _ = c.Close() }() // the client has gone
	in := bufio.NewReader(c)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		select {
		case s.heard <- line:
		default:
		}
		body := ""
		if strings.HasPrefix(line, "put ") {
			body, _ = in.ReadString('\n')
		}
		reply := s.reply(strings.Fields(line), strings.TrimSpace(body))
		if s.spoil != nil {
			reply = s.spoil(reply)
		}
		if _, err := io.WriteString(c, reply); err != nil || reply == "" {
			return
		}
	}
}

func (s *tubeServer) reply(words []string, body string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch words[0] {
	case "use":
		return "USING " + words[1] + "\r\n"
	case "put":
		s.ready = append(s.ready, fmt.Sprintf("%d %s", s.next, body))
		s.next++
		return fmt.Sprintf("INSERTED %d\r\n", s.next-1)
	case "reserve-with-timeout":
		if len(s.ready) == 0 {
			return "TIMED_OUT\r\n"
		}
		id, body, _ := strings.Cut(s.ready[0], " ")
		s.ready = s.ready[1:]
		return fmt.Sprintf("RESERVED %s %d\r\n%s\r\n", id, len(body), body)
	case "delete":
		return "DELETED " + words[1][len(words[1])-1:] + "\r\n" // the last digit, so that a wrong id shows
	}
	return "UNKNOWN_COMMAND\r\n"
}

// dialTo is Options.Dial.
func dialTo(ln net.Listener) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", ln.Addr().String())
	}
}

// proxied starts a proxy in front of a server.
func proxied(t testing.TB, server net.Listener, w Watcher) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := Proxy{Server: server.Addr().String(), Watcher: w}
	done := make(chan error, 1)
	go func() { done <- p.Serve(ln) }()
	t.Cleanup(func() {
		_ = ln.Close() // ends Serve
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// talk sends requests one by one over one connection and returns the replies.
func talk(t testing.TB, address string, requests ...string) (replies []string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // all was answered
	in := bufio.NewReader(c)
	for _, r := range requests {
		if _, err := io.WriteString(c, r+"\r\n"); err != nil {
			t.Fatal(err)
		}
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("%q: %v", r, err)
		}
		if strings.HasPrefix(line, "RESERVED") {
			body, _ := in.ReadString('\n')
			line += body
		}
		replies = append(replies, line)
	}
	return replies
}

// everyday is a typical life of a job.
var everyday = []string{
	"put 0 0 60 1\r\na", "put 0 0 60 1\r\nb", "reserve-with-timeout 0", "delete 100", "reserve-with-timeout 0",
	"delete 101",
}

// compare runs the requests through a proxy in front of a server that counts from 100, and compares with the second
// server.
func compare(t *testing.T, second net.Listener, requests ...string) (Report, []string) {
	t.Helper()
	c, err := NewComparer(Options{Protocol: "beanstalk", Dial: dialTo(second)})
	if err != nil {
		t.Fatal(err)
	}
	replies := talk(t, proxied(t, startTube(t, 100, nil), c), requests...)
	return c.Finish(), replies
}

func wantCounts(t *testing.T, r *Report, equal, different, unknown uint64) {
	t.Helper()
	if r.Equal != equal || r.Different != different || r.Unknown != unknown || r.Requests != equal+different+unknown {
		t.Errorf("%s, want equal %d, different %d, unknown %d; reasons %v; found %v", r.Summary(), equal, different,
			unknown, r.Reasons, r.Found)
	}
}

// The second server counts from 20. Its reply to delete contains the last digit of the id, which shows that it received
// its own id.
func TestIDsOfServersMayDiffer(t *testing.T) {
	t.Parallel()
	r, replies := compare(t, startTube(t, 20, nil), everyday...)
	wantCounts(t, &r, 6, 0, 0)
	if want := "INSERTED 100\r\n"; replies[0] != want {
		t.Errorf("the client got %q, want %q", replies[0], want)
	}
}

func TestDifferencesHaveBothReplies(t *testing.T) {
	t.Parallel()
	spoil := func(reply string) string { return strings.Replace(reply, "DELETED", "NOT_FOUND", 1) }
	r, replies := compare(t, startTube(t, 20, spoil), everyday...)
	wantCounts(t, &r, 4, 2, 0)
	if replies[3] != "DELETED 0\r\n" {
		t.Errorf("the client got %q", replies[3])
	}
	if len(r.Found) != 2 || r.Found[0].Request != `"delete 100\r\n"` || r.Found[0].Server != `"DELETED 0\r\n"` ||
		r.Found[0].Broker != `"NOT_FOUND 0\r\n"` {
		t.Errorf("differences %v", r.Found)
	}
}

func TestEarlierJobsAreUnknown(t *testing.T) {
	t.Parallel()
	first, second := startTube(t, 100, nil), startTube(t, 20, nil)
	talk(t, first.Addr().String(), "put 0 0 60 1\r\na")
	c, err := NewComparer(Options{Protocol: "beanstalk", Dial: dialTo(second)})
	if err != nil {
		t.Fatal(err)
	}
	proxy := proxied(t, first, c)
	talk(t, proxy, "reserve-with-timeout 0", "delete 100", "reserve-with-timeout 0")
	c.waitEmpty() // a job that comes meanwhile would leave open why the second reserve got none
	talk(t, proxy, "put 0 0 60 1\r\nb", "use x")
	r := c.Finish()
	wantCounts(t, &r, 3, 0, 2)
	if r.Reasons[whyBefore] != 2 {
		t.Errorf("reasons %v", r.Reasons)
	}
}

// Clients do not notice a second server that is down, hangs or closes connections.
func TestBrokenSecondServerDoesNotAffectClients(t *testing.T) {
	t.Parallel()
	gone := startTube(t, 1, nil)
	_ = gone.Close() // refuses connections
	r, _ := compare(t, gone, everyday...)
	if !strings.Contains(r.Dropped, errUnreachable.Error()) {
		t.Errorf("dropped %q", r.Dropped)
	}
	r, _ = compare(t, startTube(t, 1, func(string) string { return "" }), everyday...)
	if r.Different == 0 || r.Equal > 0 {
		t.Errorf("closed connections: %s", r.Summary())
	}
}

// The user of the proxy learns that the server is down, but not once for each client.
func TestAnUnreachableServerIsReportedOnce(t *testing.T) {
	t.Parallel()
	gone := startTube(t, 1, nil)
	_ = gone.Close() // refuses connections
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var reported []error
	p := &Proxy{Server: gone.Addr().String(), Unreachable: func(err error) { reported = append(reported, err) }}
	done := make(chan error)
	go func() { done <- p.Serve(ln) }()
	for range 3 {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(c); err != nil {
			t.Errorf("the client got %v", err)
		}
		_ = c.Close() // it was closed by the proxy
	}
	if err := errors.Join(ln.Close(), <-done); err != nil || len(reported) != 1 {
		t.Errorf("%v, reported %v", err, reported)
	}
}

// A comparer without memory reports that it cannot keep up; the clients do not notice.
func TestComparisonEndsAtItsMemoryLimit(t *testing.T) {
	t.Parallel()
	second := startTube(t, 20, nil)
	c, err := NewComparer(Options{Protocol: "beanstalk", Dial: dialTo(second), MaxBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if replies := talk(t, proxied(t, startTube(t, 100, nil), c), everyday...); replies[5] != "DELETED 1\r\n" {
		t.Errorf("the client got %q", replies)
	}
	if r := c.Finish(); !strings.Contains(r.Dropped, "behind") {
		t.Errorf("dropped %q", r.Dropped)
	}
}

// Two workers get each other's job at the second server. This difference in the order of deliveries is allowed.
func TestWorkersMaySwapJobs(t *testing.T) {
	t.Parallel()
	c, err := NewComparer(Options{Protocol: "beanstalk", Dial: dialTo(startTube(t, 20, nil))})
	if err != nil {
		t.Fatal(err)
	}
	say := func(conn int, request, reply string) {
		c.Watch(Event{Conn: conn, Kind: FromClient, Data: []byte(request)})
		c.Watch(Event{Conn: conn, Kind: FromServer, Data: []byte(reply)})
	}
	for conn := 1; conn <= 3; conn++ {
		c.Watch(Event{Conn: conn, Kind: Opened})
	}
	say(1, "put 0 0 60 1\r\na\r\n", "INSERTED 100\r\n")
	say(1, "put 0 0 60 1\r\nb\r\n", "INSERTED 101\r\n")
	say(2, "reserve\r\n", "RESERVED 101 1\r\nb\r\n")
	say(3, "reserve\r\n", "RESERVED 100 1\r\na\r\n")
	say(2, "delete 101\r\n", "DELETED 0\r\n") // at the second server this worker got job 20
	say(3, "delete 100\r\n", "DELETED 1\r\n")
	r := c.Finish()
	wantCounts(t, &r, 6, 0, 0)
}

// A second server that is slow to reply, for example because its disk is busy, is compared like a fast one.
func TestSlowSecondServerIsCompared(t *testing.T) {
	t.Parallel()
	slow := func(reply string) string {
		time.Sleep(2 * deliverWithin)
		return reply
	}
	r, _ := compare(t, startTube(t, 20, slow), everyday...)
	wantCounts(t, &r, 6, 0, 0)
}

func TestRecordingIsReplayed(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	rec, err := NewRecorder(&file, "beanstalk", "old")
	if err != nil {
		t.Fatal(err)
	}
	talk(t, proxied(t, startTube(t, 100, nil), rec), append(everyday, "put 0 0 60 2\r\n\xff\x00")...)
	if err := rec.Flush(); err != nil {
		t.Fatal(err)
	}
	whole := file.String()
	for _, text := range []string{whole, whole[:len(whole)-5]} { // the second one was cut off
		in, err := ReadRecording(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewComparer(Options{
			Protocol: in.Protocol, Server: in.Server, Dial: dialTo(startTube(t, 20, nil)), Block: true, MaxBytes: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := in.Play(c, true); err != nil {
			t.Fatal(err)
		}
		if r := c.Finish(); r.Equal < 6 || r.Equal+r.Unknown != 7 || text == whole && r.Equal != 7 {
			t.Errorf("%s", r.Summary())
		}
	}
}

// A second server that is behind does not shorten the pauses of a recording: a job may be delayed for such a time.
func TestPausesOfARecordingAreKept(t *testing.T) {
	t.Parallel()
	const pause = 400 * time.Millisecond
	in := recorded(t, "beanstalk", []Event{
		{Conn: 1, Kind: Opened},
		{Conn: 1, Kind: FromClient, Data: []byte("put 0 0 60 1\r\na\r\n")},
		{Conn: 1, Kind: FromServer, Data: []byte("INSERTED 100\r\n")},
		{At: pause, Conn: 1, Kind: FromClient, Data: []byte("reserve\r\n")},
		{At: pause, Conn: 1, Kind: FromServer, Data: []byte("RESERVED 100 1\r\na\r\n")},
	})
	var put, reserved time.Time
	second := startTube(t, 20, func(reply string) string {
		if strings.HasPrefix(reply, "INSERTED") {
			time.Sleep(pause)
			put = time.Now()
		} else {
			reserved = time.Now()
		}
		return reply
	})
	c, err := NewComparer(Options{Protocol: in.Protocol, Dial: dialTo(second), Block: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Play(c, false); err != nil {
		t.Fatal(err)
	}
	r := c.Finish()
	wantCounts(t, &r, 2, 0, 0)
	if got := reserved.Sub(put); got < pause-behindFor {
		t.Errorf("a pause of %v became one of %v", pause, got)
	}
}

// A server that keeps connections and answers nothing, as a node of a cluster without a leader, is not one about which
// nothing is known.
func TestServerThatAnswersNothingDiffersAlsoForClientsThatLeave(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }() // its connections are never accepted
	in := recorded(t, "beanstalk", []Event{
		{Conn: 1, Kind: Opened},
		{Conn: 1, Kind: FromClient, Data: []byte("put 0 0 60 1\r\na\r\n")},
		{Conn: 1, Kind: FromServer, Data: []byte("INSERTED 100\r\n")},
		{Conn: 1, Kind: Closed},
	})
	c, err := NewComparer(Options{
		Protocol: in.Protocol, Dial: dialTo(silent), Block: true, Patience: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := in.Play(c, false); err != nil {
		t.Fatal(err)
	}
	r := c.Finish()
	wantCounts(t, &r, 0, 1, 0)
}

// recorded is a recording of events, as a file has it.
func recorded(t *testing.T, protocol string, events []Event) *Recording {
	t.Helper()
	var file bytes.Buffer
	rec, err := NewRecorder(&file, protocol, "old")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		rec.Watch(e)
	}
	if err := rec.Flush(); err != nil {
		t.Fatal(err)
	}
	in, err := ReadRecording(&file)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestRecordingKeepsEveryByte(t *testing.T) {
	t.Parallel()
	events := []Event{
		{At: time.Millisecond, Conn: 1, Kind: Opened},
		{At: 2 * time.Millisecond, Conn: 1, Kind: FromClient, Data: []byte("\x00REQ<\u2028>\r\n")},
		{At: 3 * time.Millisecond, Conn: 1, Kind: FromServer, Data: []byte{0, 0xff, 'a'}},
		{At: 4 * time.Millisecond, Conn: 1, Kind: Closed},
	}
	in := recorded(t, "gearman", events)
	for _, want := range events {
		got, err := in.next()
		if err != nil || got.At != want.At || got.Conn != want.Conn || got.Kind != want.Kind ||
			!bytes.Equal(got.Data, want.Data) {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
	if _, err := in.next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestRecordingOfBeanstalkdIsOfBeanstalk(t *testing.T) {
	t.Parallel()
	in, err := ReadRecording(strings.NewReader(`{"recording":1,"protocol":"beanstalkd","server":"old"}`))
	if err != nil || in.Protocol != "beanstalk" {
		t.Errorf("%+v, %v", in, err)
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "hello", `{"recording":2,"protocol":"gearman"}`, `{"recording":1,"protocol":"smtp"}`,
	} {
		if _, err := ReadRecording(strings.NewReader(text)); err == nil {
			t.Errorf("%q is a recording", text)
		}
	}
}

// BenchmarkRequest measures a request: directly to the server, through a proxy without a watcher, and with the
// comparison.
func BenchmarkRequest(b *testing.B) {
	server := startTube(b, 1, nil)
	for _, way := range []string{"direct", "proxy", "compared"} {
		b.Run(way, func(b *testing.B) {
			address := server.Addr().String()
			switch way {
			case "proxy":
				address = proxied(b, server, nobody{})
			case "compared":
				c, err := NewComparer(Options{Protocol: "beanstalk", Dial: dialTo(startTube(b, 1, nil))})
				if err != nil {
					b.Fatal(err)
				}
				defer c.Close()
				address = proxied(b, server, c)
			}
			requests := make([]string, 0, 2*b.N)
			for range b.N {
				requests = append(requests, "put 0 0 60 1\r\na", "reserve-with-timeout 0")
			}
			b.ResetTimer()
			talk(b, address, requests...)
		})
	}
}

type nobody struct{}

func (nobody) Watch(Event) {}
