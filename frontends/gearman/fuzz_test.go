package gearman

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"broker/frontends/frontendtest"
	"broker/frontends/gearman/packet"
)

// script turns fuzzed bytes into the actions of two clients. When the bytes are used up, every choice is the first one.
type script struct{ in []byte }

func (s *script) choose(n int) int {
	if len(s.in) == 0 {
		return 0
	}
	c := int(s.in[0])
	s.in = s.in[1:]
	return c % n
}

func (s *script) one(of ...string) string { return of[s.choose(len(of))] }

// message is a valid packet or line with one of a few functions, uniques and handles, so that they collide.
func (s *script) message() []byte {
	function := func() string { return s.one("f", "g", "") }
	unique := func() string { return s.one("", "u", "v", "-") }
	handle := func() string { return fmt.Sprint("H:host:", 1+s.choose(12)) }
	data := func() string { return s.one("", "x", "a longer\x00one") }
	at := fmt.Sprint(1893456000 + s.choose(8) - 1) // the clock of the stage starts there
	typ := packet.Type(1 + s.choose(int(packet.NumTypes)+2))
	switch typ {
	case packet.CanDo, packet.CantDo:
		return request(typ, function())
	case packet.SetClientID, packet.EchoReq, packet.OptionReq:
		return request(typ, s.one("exceptions", "x", ""))
	case packet.CanDoTimeout:
		return request(typ, function(), s.one("0", "1", "2000", "x"))
	case packet.SubmitJob, packet.SubmitJobBg, packet.SubmitJobHigh, packet.SubmitJobHighBg, packet.SubmitJobLow,
		packet.SubmitJobLowBg:
		return request(typ, function(), unique(), data())
	case packet.SubmitJobEpoch:
		return request(typ, function(), unique(), at, data())
	case packet.SubmitJobSched:
		return request(typ, function(), unique(), s.one("", "1", "61"), "", "", "", "", data())
	case packet.SubmitReduceJob, packet.SubmitReduceJobBg:
		return request(typ, function(), unique(), s.one("", "r"), "", data())
	case packet.WorkStatus:
		return request(typ, handle(), s.one("1", "x", "99999999999"), s.one("2", ""))
	case packet.WorkComplete, packet.WorkException, packet.WorkData, packet.WorkWarning:
		return request(typ, handle(), data())
	case packet.WorkFail, packet.GetStatus:
		return request(typ, handle())
	case packet.GetStatusUnique:
		return request(typ, unique())
	case packet.NumTypes:
		return []byte(s.one("status", "prioritystatus", "workers", "show jobs", "show unique jobs", "version",
			"x") + "\r\n")
	case packet.NumTypes + 1:
		return []byte(s.one("cancel job "+handle(), "drop function "+function(), "create function "+function()) + "\n")
	case packet.NumTypes + 2:
		return []byte("maxqueue " + s.one("f", "g") + " " + s.one("0", "1", "3") + "\r\n")
	}
	return request(typ)
}

// wellFormed parses the output for a client into packets and lines; the rest must be empty.
func wellFormed(p []byte) error {
	for len(p) > 0 {
		if p[0] != 0 {
			end := bytes.IndexByte(p, '\n')
			if end < 0 {
				return fmt.Errorf("half a line: %q", p)
			}
			p = p[end+1:]
			continue
		}
		if len(p) < packet.HeaderBytes {
			return fmt.Errorf("no packet: %q", p)
		}
		typ, size, ok := packet.Header(p, packet.AnswerMagic)
		n := packet.HeaderBytes + int(size)
		if !ok || len(p) < n || typ.Layout().Name == "" {
			return fmt.Errorf("no packet: %q", p)
		}
		p = p[n:]
	}
	return nil
}

// play runs the script of two clients and checks the broker after each step. At the end workers must be able to process
// all remaining jobs, and the counters must match.
func play(t *testing.T, s *script, settings ...frontendtest.Setting) {
	stage := frontendtest.Open(t, newMaker(func(o *Options) { o.JobRetries = 5 }), settings...)
	check := func(step string) {
		t.Helper()
		if err := stage.Broker.(interface{ Check() error }).Check(); err != nil {
			t.Fatalf("after %q: %v", step, err)
		}
	}
	clients := [2]*frontendtest.Client{stage.Dial("a"), stage.Dial("b")}
	for steps := 0; len(s.in) > 0 && steps < 300; steps++ {
		i := s.choose(2)
		var what string
		switch s.choose(16) {
		case 0:
			what = "hang up"
			clients[i].Hangup()
			clients[i] = stage.Dial(fmt.Sprint("client ", steps))
		case 1:
			what = "time passes"
			stage.Advance(time.Duration(1+s.choose(5)) * 300 * time.Millisecond)
		default:
			m := s.message()
			what = string(m)
			clients[i].SendBytes(m)
		}
		t.Logf("client %d: %q", i, what)
		check(what)
		for _, c := range clients {
			if err := wellFormed(c.Rest()); err != nil {
				t.Fatalf("after %q: %v", what, err)
			}
			if c.Closed() {
				t.Fatalf("after %q: the connection was closed", what)
			}
		}
	}
	for _, c := range clients {
		c.Hangup()
	}
	stage.Advance(time.Hour)
	check("the end")
	drain(t, stage)
	check("all jobs done")
}

// drain processes all remaining jobs; then all counters must be zero.
func drain(t *testing.T, stage *frontendtest.Stage) {
	t.Helper()
	w := stage.Dial("last")
	w.Send("maxqueue f\r\nmaxqueue g\r\n")
	w.Want("OK\r\nOK\r\n")
	w.SendBytes([]byte(join(request(packet.CanDo, "f"), request(packet.CanDo, "g"), request(packet.CanDo, ""))))
	for jobs := 0; ; jobs++ {
		w.SendBytes(request(packet.GrabJob))
		typ, fields := readPacket(w)
		if typ == packet.NoJob {
			break
		}
		if jobs > 1000 {
			t.Fatal("jobs without end")
		}
		w.SendBytes(request(packet.WorkComplete, fields[0], ""))
	}
	w.Send("show jobs\r\nstatus\r\n")
	got := string(w.Rest())
	for row := range strings.Lines(strings.TrimPrefix(got, ".\n")) {
		if row != ".\n" && !strings.HasSuffix(row, "\t0\t0\t1\n") {
			t.Fatalf("after all jobs were done: %q", got)
		}
	}
}

// FuzzSessions sends random valid messages on two connections of a broker without storage.
func FuzzSessions(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		in := make([]byte, 400)
		for i := range in {
			in[i] = byte(random.UintN(256))
		}
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in []byte) { play(t, &script{in: in}, frontendtest.InMemory) })
}

// The same with a store, so that replies wait for commits. The random seed is fixed, so that failures can be
// reproduced.
func TestRandomSessionsOnAStore(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 7))
			in := make([]byte, 1500)
			for i := range in {
				in[i] = byte(random.UintN(256))
			}
			play(t, &script{in: in})
		})
	}
}
