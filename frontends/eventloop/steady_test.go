package eventloop

import (
	"os"
	"testing"

	"github.com/rs/zerolog"

	"broker/frontends"
)

// quietSession takes everything and answers with one reply that rests on a commit and one that does not.
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

// nullWire takes everything at once.
type nullWire struct{ sent int }

func (w *nullWire) send(p []byte) (int, error) { w.sent += len(p); return len(p), nil }
func (w *nullWire) pending() (int, bool)       { return 0, false }
func (w *nullWire) finish()                    {}
func (w *nullWire) hangup(bool) error          { return nil }
func (w *nullWire) peer() peerState            { return peerThere }
func (w *nullWire) pause() bool                { return true }
func (w *nullWire) resume(*conn) error         { return nil }
func (w *nullWire) close()                     {}

func quietConn() (*conn, *nullWire) {
	b := &toyBroker{}
	b.committed.Store(1)
	w := &nullWire{}
	l := newLoop()
	l.schedule, l.scheduleLater = func() {}, func() {}
	c := &conn{
		srv:   &Server{broker: b, log: zerolog.Nop()},
		group: &group{limits: frontends.Limits{MaxInput: 1 << 20, MaxOutput: 1 << 20}},
		loop:  l, transport: w,
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

// Not parallel: what the first stop has freed must come to the files below.
func TestSecondStopClosesNobodysDescriptors(t *testing.T) {
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
			t.Errorf("a file was closed by another's number: %v", err)
		}
	}
}
