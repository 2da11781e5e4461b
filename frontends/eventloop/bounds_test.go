package eventloop

import (
	"fmt"
	"io"
	"testing"

	"broker/frontends"
)

// What a client that takes less than it asks for may cost, as it is written down for operators.
func TestBoundsOfASlowClient(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]int{64 << 20: 1 << 20, 4 << 20: 1 << 20, 2 << 20: 512 << 10} {
		g := group{limits: frontends.Limits{MaxOutput: limit}}
		if got := g.highWater(); got != want {
			t.Errorf("with a limit of %d it is held back at %d, not %d", limit, got, want)
		}
	}
}

// A socket is read until so much waits, and not much further: what a peer sends beyond stays in the kernel.
func TestRequestsThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	carriers(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c := dial(t)
		const much = 15_000_000 // more than both kernel buffers take, and the mark of a crowd
		c.send(fmt.Sprintf("big %d\n", much))
		go func() { // ends with the connection
			for i := 0; ; i++ {
				if _, err := fmt.Fprintf(c, "echo %01000d\n", i); err != nil {
					return
				}
			}
		}()
		const waits, oneRead = 256 << 10, 128 << 10
		held := 0
		eventually(t, "not read", func() bool {
			return f.count(func(c *conn) bool { held = c.in.len(); return c.paused }) == 1
		})
		if held <= waits || held > waits+oneRead {
			t.Errorf("%d bytes of requests wait", held)
		}
		if _, err := io.CopyN(io.Discard, c, much); err != nil {
			t.Error(err) // it is held back, not cut off
		}
	}, limits(1<<20, 16<<20))
}
