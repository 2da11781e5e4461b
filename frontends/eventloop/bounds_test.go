package eventloop

import (
	"fmt"
	"io"
	"testing"

	"broker/frontends"
)

// The limits of a slow reader, as they are documented for operators.
func TestLimitsOfASlowReader(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]int{64 << 20: 1 << 20, 4 << 20: 1 << 20, 2 << 20: 512 << 10} {
		g := group{bounds: frontends.Bounds{MaxOutput: limit}}
		if got := g.highWater(); got != want {
			t.Errorf("with a limit of %d it is throttled at %d, not %d", limit, got, want)
		}
	}
}

// A socket is read until the limit of held input is reached, and not much further: the rest stays in the kernel.
func TestHeldInputIsBounded(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c := dial(t)
		const much = 4_000_000 // more than both kernel buffers and the limit
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
			t.Errorf("%d bytes of requests are held", held)
		}
		if _, err := io.CopyN(io.Discard, c, much); err != nil {
			t.Error(err) // it is throttled, not cut off
		}
	}, bounds(1<<20, 16<<20))
}
