package qless

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

// gatedBroker holds back the pages of one kind of a front-end that loads its state.
type gatedBroker struct {
	core.Broker
	holds func(core.Op) bool
	asks  chan struct{} // a page is held back
	open  chan struct{} // closed: no page is held back
}

func (g *gatedBroker) Do(c core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	if len(ops) == 1 && g.holds(ops[0]) {
		select {
		case g.asks <- struct{}{}:
			<-g.open
		case <-g.open:
		}
	}
	return g.Broker.Do(c, ops, into)
}

// loadGated begins to load a front-end, and returns once it asks for a page that is held back.
func loadGated(
	t *testing.T, s *frontendtest.Stage, holds func(core.Op) bool,
) (g *gatedBroker, f *Frontend, loaded chan error) {
	t.Helper()
	g = &gatedBroker{Broker: s.Broker, holds: holds, asks: make(chan struct{}), open: make(chan struct{})}
	f, loaded = New(access.Unrestricted(g, core.Qless), Options{}), make(chan error, 1)
	s.Front = f
	go func() { loaded <- f.Start() }()
	<-g.asks
	return g, f, loaded
}

func holdsDocuments(op core.Op) bool { _, is := op.(*core.ReadDocuments); return is }
func holdsJobs(op core.Op) bool      { _, is := op.(*core.ListJobs); return is }

// later starts the front-end when the test does so.
func later(b core.Broker) frontends.Frontend {
	return New(access.Unrestricted(b, core.Qless), Options{})
}

func TestClientsGetLoadingUntilTheStateIsLoaded(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, later)
	g, f, loaded := loadGated(t, s, holdsDocuments)
	c := conn{s.Dial("client"), t}
	const refusal = "-LOADING Redis is loading the dataset in memory"
	for _, words := range []string{
		"EVALSHA x 0 put", "EVAL x 0 put", "SCRIPT EXISTS x", "ZCARD ql:x", "FLUSHDB", "MULTI", "EXEC", "PING",
	} {
		if got := c.do(strings.Fields(words)...); got != refusal {
			t.Errorf("%s: %s", words, got)
		}
	}
	for words, want := range map[string]string{
		"SELECT 0": "OK", "CLIENT SETNAME x": "OK", "ECHO x": "x", "RESET": "RESET", "AUTH x": "-ERR AUTH",
	} {
		if got := c.do(strings.Fields(words)...); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", words, got, want)
		}
	}
	if got := c.do("INFO"); !strings.Contains(got, "loading:1") {
		t.Errorf("info: %s", got)
	}
	f.Tick(s.Clock.Now()) // does not wait
	close(g.open)
	if err := <-loaded; err != nil {
		t.Fatal(err)
	}
	c = dial(t, s)
	c.want("j", "put", "1", "me", "q", "j", "K", "{}", "0")
	if got := c.do("INFO"); !strings.Contains(got, "loading:0") {
		t.Errorf("info: %s", got)
	}
}

// TestChangesOfOthersWhileTheStateIsLoadedAreSeen changes jobs by another protocol before and after the documents are
// read.
func TestChangesOfOthersWhileTheStateIsLoadedAreSeen(t *testing.T) {
	t.Parallel()
	for phase, holds := range map[string]func(core.Op) bool{"documents": holdsDocuments, "jobs": holdsJobs} {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			s, c := setup(t)
			for i := range 3 {
				c.call("put", strconv.Itoa(i+1), "me", "q", "j"+strconv.Itoa(i), "K", "{}", "0")
			}
			c.Hangup()
			g, f, loaded := loadGated(t, s, holds)
			own := s.Broker.Open(core.ClientOptions{Protocol: core.Workq, Wake: func() {}})
			ops := []core.Op{
				&core.Cancel{Ref: core.Ref{ID: "j0"}},
				&core.Complete{Ref: core.Ref{ID: "j1"}, Authority: core.ByAnyone},
				&core.Submit{Job: &core.Job{ID: "other", Queue: "q"}},
			}
			for i := range 1_000 {
				id := "short" + strconv.Itoa(i)
				ops = append(ops, &core.Submit{Job: &core.Job{ID: id, Queue: "p"}}, &core.Cancel{Ref: core.Ref{ID: id}})
			}
			for _, r := range s.Broker.Do(own, ops, nil) {
				if r.Err != nil {
					t.Fatal(r.Err)
				}
			}
			close(g.open)
			if err := <-loaded; err != nil {
				t.Fatal(err)
			}
			if f.pending.lost || f.loading != nil {
				t.Error("events were lost, or the load has left something")
			}
			c = dial(t, s)
			c.want("(nil)", "get", "9", "j0")
			for jid, state := range map[string]string{"j1": "complete", "j2": "waiting", "other": "waiting"} {
				if got := c.call("get", "9", jid); !strings.Contains(got, `"state":"`+state+`"`) {
					t.Errorf("job %s: %s, want %s", jid, got, state)
				}
			}
		})
	}
}

func TestLoadThatFailsSaysWhy(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, later)
	own := s.Broker.Open(core.ClientOptions{Protocol: core.Internal, Wake: func() {}})
	bad := []core.MetaEntry{{Name: jobDocs + "j", Value: []byte("?")}}
	s.Broker.Do(own, []core.Op{&core.WriteDocuments{Documents: bad}}, nil)
	f := New(access.Unrestricted(s.Broker, core.Qless), Options{})
	if err := f.Start(); err == nil || !strings.Contains(err.Error(), `document "qless/job/j"`) {
		t.Errorf("a document that cannot be read: %v", err)
	}
	s.Front = f
	if got := (conn{s.Dial("client"), t}).do("PING"); !strings.HasPrefix(got, "-LOADING") {
		t.Errorf("ping: %s", got)
	}
}

func TestStopEndsALoad(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, later)
	g, f, loaded := loadGated(t, s, holdsDocuments)
	f.Stop()
	close(g.open)
	if err := <-loaded; !errors.Is(err, errStopped) {
		t.Errorf("got %v", err)
	}
}
