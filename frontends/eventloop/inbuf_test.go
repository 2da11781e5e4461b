package eventloop

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestInputBufferKeepsBytes appends and consumes pieces of random sizes in two buffers, so that blocks change owners,
// and compares the content with a plain slice.
func TestInputBufferKeepsBytes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var in [2]inbuf
	var want [2][]byte
	var peak [2]int // bytes held since the buffer was last empty
	for step := range 5000 {
		at := r.IntN(2)
		if i, w := &in[at], &want[at]; r.IntN(3) > 0 {
			p := make([]byte, r.IntN(1<<r.IntN(18)))
			for k := range p {
				p[k] = byte(step + k)
			}
			i.append(p)
			*w = append(*w, p...)
			clear(p)
		} else if n := i.len(); n > 0 {
			n = 1 + r.IntN(n)
			i.consume(n)
			*w = (*w)[n:]
		}
		if len(want[at]) > 1<<20 {
			in[at].clear()
			want[at] = nil
		}
		if !bytes.Equal(in[at].unread(), want[at]) {
			t.Fatalf("step %d: the buffer differs from the input", step)
		}
		if peak[at] = max(peak[at], in[at].len()); in[at].len() == 0 {
			peak[at] = 0
		}
		if room := cap(in[at].b); room > max(leastBlock, peak[at]*3/2) {
			t.Fatalf("step %d: capacity %d, but never more than %d bytes were held", step, room, peak[at])
		}
	}
}
