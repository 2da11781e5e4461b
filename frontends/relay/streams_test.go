package relay

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// streams starts a leader whose streams of events begin with the one after Last-Event-ID. Each writes two events and
// the begin of a third, and then ends as the leader says.
func (f *fixture) streams(g *Gateway, name string, ids bool, end <-chan struct{}) http.Handler {
	own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		last := 0
		_, _ = fmt.Sscan(r.Header.Get("Last-Event-ID"), &last) // 0 without one
		for n := last + 1; n <= last+2; n++ {
			if ids {
				_, _ = fmt.Fprintf(w, "id: %d\n", n) // the test reads it
			}
			_, _ = fmt.Fprintf(w, "data: %s %d\n\n", name, n) // the test reads it
		}
		_, _ = io.WriteString(w, "data: never\n") // not whole
		_ = http.NewResponseController(w).Flush() // to the test
		select {
		case <-end:
			panic(http.ErrAbortHandler)
		case <-r.Context().Done():
		}
	})
	h := g.Handler(Handlers{Own: own, OverLink: own, HomeOf: homeOf})
	inner := &http.Server{Handler: h, ReadTimeout: time.Minute}
	go func() { _ = inner.Serve(g.Tunnel()) }() // ends with the tunnel
	f.Cleanup(func() { _ = inner.Close() })     // nothing is left
	return h
}

// A stream of events goes on behind its last whole event: at the next leader, at this node when it leads, and though
// its leader stands still.
func TestStreamsOutliveTheirLeader(t *testing.T) {
	f := setup(t)
	fails, never := make(chan struct{}), make(chan struct{})
	f.streams(f.leader, "b", true, fails)
	next := New(1)
	next.Lead(greeter{})
	f.Cleanup(next.Close)
	f.streams(next, "c", true, never)
	outer := httptest.NewServer(f.streams(f.follower, "a", true, never))
	f.Cleanup(outer.Close)
	lines := f.listen(outer.URL)
	f.expect(lines, "id: 1,data: b 1,,id: 2,data: b 2,")
	f.node.lead("c", next)
	close(fails)
	f.expect(lines, "id: 3,data: c 3,,id: 4,data: c 4,")
	f.follower.Lead(greeter{}) // c does not end the stream
	f.expect(lines, "id: 5,data: a 5,,id: 6,data: a 6,")
	f.node.lead("b", f.leader)
	f.follower.Follow()
	f.follower.LeaderChanged()
	f.expect(lines, "id: 7,data: b 7,,id: 8,data: b 8,")
}

// A stream without ids ends with its leader, and so does any without a next leader.
func TestStreamsThatCannotGoOnEnd(t *testing.T) {
	for name, ids := range map[string]bool{"without ids": false, "of a node that is closed": true} {
		t.Run(name, func(t *testing.T) {
			f := setup(t)
			fails := make(chan struct{})
			f.streams(f.leader, "b", ids, fails)
			outer := httptest.NewServer(f.streams(f.follower, "a", ids, nil))
			f.Cleanup(outer.Close)
			lines := f.listen(outer.URL)
			for line := range lines {
				if line == "data: b 2" {
					break
				}
			}
			if ids {
				f.follower.change(func(s *state) { s.closed = true })
			}
			close(fails)
			for line := range lines {
				if line != "" {
					t.Errorf("the stream goes on with %q", line)
				}
			}
		})
	}
}

// listen sends the lines of a stream of events; the channel is closed with the stream.
func (f *fixture) listen(url string) <-chan string {
	r, err := http.NewRequestWithContext(f.Context(), http.MethodGet, url+"/api/v1/events", http.NoBody)
	if err != nil {
		f.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = answer.Body.Close() }) // only read
	lines := make(chan string)
	go func() { // ends with the stream
		defer close(lines)
		for in := bufio.NewScanner(answer.Body); in.Scan(); {
			select {
			case lines <- in.Text():
			case <-f.Context().Done():
				return
			}
		}
	}()
	return lines
}

// expect reads lines, which commas separate.
func (f *fixture) expect(lines <-chan string, want string) {
	f.Helper()
	for i, w := range strings.Split(want, ",") {
		select {
		case line := <-lines:
			if line != w {
				f.Fatalf("line %d of %q is %q", i, want, line)
			}
		case <-time.After(time.Minute):
			f.Fatalf("line %d of %q does not come", i, want)
		}
	}
}
