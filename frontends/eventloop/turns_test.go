package eventloop

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// On a single loop, several connections always have more work, and one connection sends a request now and then. It must
// be served between any two turns of the others, no matter how they wake.
func TestConnThatWakesItselfYieldsToOthers(t *testing.T) {
	t.Parallel()
	f := setup(t, func(_ *fixture, o *Options, _ *Listener) { o.Loops = 1 })
	const spinners, asked = 3, 31
	for range spinners {
		f.dial(t).send("spin\n")
	}
	eventually(t, "all spin", func() bool { return f.toy.spins.Load() > 10*spinners })
	c := f.dial(t)
	var waited []int64
	for range asked {
		before := f.toy.spins.Load()
		c.send("spins\n")
		line, err := c.r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		after, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		waited = append(waited, after-before)
		f.toy.wakeAll() // like a commit
	}
	slices.Sort(waited)
	if m := waited[asked/2]; m > 40*spinners {
		t.Errorf("half of the requests waited for %d turns of %d others; all: %v", m, spinners, waited)
	}
}

// slowSession consumes everything slowly.
type slowSession struct {
	quietSession
	got   []byte
	feeds int
}

func (s *slowSession) Feed(in []byte) int {
	time.Sleep(2 * feedTime)
	s.feeds++
	s.got = append(s.got, in...)
	return len(in)
}

// Input that takes long to process is fed in many turns, in order. During that time the client stays connected, but its
// socket is not read.
func TestSlowInputIsFedInTurns(t *testing.T) {
	t.Parallel()
	c, _ := quietConn()
	s := &slowSession{}
	c.session = s
	var sent []byte
	for n := 0; !c.paused; n++ {
		read := bytes.Repeat([]byte{byte('a' + n%26)}, 64<<10)
		sent = append(sent, read...)
		c.onData(read)
		if s.feeds != 1 || len(s.got) != feedPiece {
			t.Fatalf("after %d reads %d bytes were fed in %d pieces", n+1, len(s.got), s.feeds)
		}
		if len(sent) > 2*maxHeldInput {
			t.Fatal("the socket is still read")
		}
	}
	turns := 0
	for ; c.in.len() > 0; turns++ {
		before := s.feeds
		c.loop.runLater()
		if s.feeds != before+1 {
			t.Fatalf("one turn fed %d pieces", s.feeds-before)
		}
	}
	if !bytes.Equal(s.got, sent) {
		t.Error("the session received other bytes than were sent")
	}
	if c.paused || c.marked.Load() || c.phase != serving {
		t.Errorf("at the end: paused %v, marked %v, phase %d", c.paused, c.marked.Load(), c.phase)
	}
	if turns < 100 {
		t.Errorf("%d turns", turns)
	}
}

// A message that arrives in many pieces, after other messages, is fed whole once it is complete.
func TestPiecesDoNotCutMessages(t *testing.T) {
	t.Parallel()
	c := setup(t).dial(t)
	for _, size := range []int{1, feedPiece - 7, feedPiece, 3*feedPiece + 1, 200_000, 64 << 10} {
		body := bytes.Repeat([]byte{'b'}, size)
		c.send("echo one\nbody " + strconv.Itoa(size) + "\n" + string(body) + "echo two\n")
		c.want("one", fmt.Sprintf("%08x", crc32.ChecksumIEEE(body)), "two")
	}
}

// messages takes one message of four bytes a call, and takes its time for it.
type messages struct {
	quietSession
	calls int
}

// Feed implements frontends.Session.
func (s *messages) Feed(in []byte) int {
	if len(in) < 4 {
		return 0
	}
	s.calls++
	time.Sleep(feedTime)
	return 4
}

// Other connections are served between expensive messages of one read, however short it is.
func TestExpensiveMessagesOfAShortReadAreFedInTurns(t *testing.T) {
	t.Parallel()
	c, _ := quietConn()
	s := &messages{}
	c.session = s
	c.onData([]byte("aaaabbbbccccddddeeeeffffgg"))
	turns := 1
	for ; c.inputLeft; turns++ {
		c.loop.runLater()
	}
	if turns < 3 {
		t.Errorf("all messages were fed in %d turns", turns)
	}
	if s.calls != 6 || c.in.len() != 2 || c.marked.Load() {
		t.Errorf("%d messages, %d bytes are left, marked %v", s.calls, c.in.len(), c.marked.Load())
	}
}
