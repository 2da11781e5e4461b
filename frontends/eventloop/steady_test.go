package eventloop

import (
	"os"
	"testing"

	"github.com/rs/zerolog"

	"broker/frontends"
)

// quietSession consumes everything and writes one reply that waits for a commit and one that does not.
type quietSession struct{ conn frontends.Conn }

func (s *quietSession) Feed(in []byte) int {
	out := s.conn.Out()
	out.Put(append(out.Buf(), "OK\r\n"...), 1)
	out.WriteString("more\r\n")
	return len(in)
}
func (s *quietSession) Deliver()        {}
func (s *quietSession) Refusal() []byte { return nil }
func (s *quietSession) EOF([]byte)      {}
func (s *quietSession) Closed()         {}

// nullTransport takes everything at once.
type nullTransport struct{ sent int }

func (w *nullTransport) send(p []byte) (int, error) { w.sent += len(p); return len(p), nil }
func (w *nullTransport) pending() (int, bool)       { return 0, false }
func (w *nullTransport) finish()                    {}
func (w *nullTransport) hangup(bool) error          { return nil }
func (w *nullTransport) peer() peerState            { return peerThere }
func (w *nullTransport) pause() bool                { return true }
func (w *nullTransport) resume(*conn) error         { return nil }
func (w *nullTransport) close()                     {}

func quietConn() (*conn, *nullTransport) {
	b := &toyBroker{}
	b.committed.Store(1)
	w := &nullTransport{}
	l := newLoop()
	l.schedule, l.scheduleLater = func() {}, func() {}
	c := &conn{
		srv:   &Server{broker: b, log: zerolog.Nop(), pools: newPools(Options{})},
		group: &group{bounds: frontends.Bounds{MaxInput: 1 << 20, MaxOutput: 1 << 20}},
		loop:  l, transport: w, admitted: true,
	}
	c.session = &quietSession{conn: c}
	return c, w
}

// Not parallel: AllocsPerRun counts for the whole process.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	c, w := quietConn()
	request := []byte("request\r\n")
	allocs := testing.AllocsPerRun(1000, func() {
		c.onData(request)
		c.Wake()
		c.loop.run()
	})
	if allocs != 0 {
		t.Errorf("%v allocations per request and wake", allocs)
	}
	if w.sent == 0 {
		t.Error("nothing was sent")
	}
}

func BenchmarkReceive(b *testing.B) {
	c, _ := quietConn()
	request := []byte("request\r\n")
	b.ReportAllocs()
	for b.Loop() {
		c.onData(request)
	}
}

// Not parallel: the descriptors that the first stop has closed must be reused by the files below.
func TestSecondStopClosesNoDescriptors(t *testing.T) {
	f := setup(t)
	f.stop()
	var files []*os.File
	for range 20 {
		file, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	f.stop()
	for _, file := range files {
		if err := file.Close(); err != nil {
			t.Errorf("a file of somebody else was closed: %v", err)
		}
	}
}
