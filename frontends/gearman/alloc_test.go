package gearman

import (
	"bytes"
	"strings"
	"testing"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
	"broker/frontends/gearman/packet"
)

// Limits the allocations of each step in the life of a job. Allocation counts are stable across machines; times are
// not.
func TestAllocationsOfAJob(t *testing.T) {
	c := frontendtest.NewCounter(t, func(b core.Broker) frontends.Frontend {
		return New(access.Unrestricted(b, core.Gearman), testOptions())
	})
	const together, rounds = 64, 60
	body, unique := strings.Repeat("x", 256), "5f0f7ff0-5a36-4d0c-8a3e-6a4a3f2b8f3a"
	submits := bytes.Repeat(request(packet.SubmitJobBg, "resize", "", body), together)
	grabs := bytes.Repeat(request(packet.GrabJobUniq), together)
	coalesced := bytes.Repeat(request(packet.SubmitJobBg, "other", unique, body), together)
	c.Send("", 1, request(packet.CanDo, "resize"))
	for range c.Rounds(rounds) {
		c.Send("submit", together, submits)
		assigned := c.Send("grab", together, grabs)
		var completes []byte
		for len(assigned) > 0 {
			var m message
			assigned[1], assigned[2], assigned[3] = 'R', 'E', 'Q' // decode accepts requests only
			n, err := decode(assigned, 1<<20, &m)
			if err != nil || n == 0 {
				t.Fatalf("answer %.80q: %v", assigned, err)
			}
			handle, _, _ := bytes.Cut(assigned[packet.HeaderBytes:n], []byte{0})
			completes = append(completes, request(packet.WorkComplete, string(handle), "")...)
			assigned = assigned[n:]
		}
		if want := together * len(request(packet.WorkComplete, "H:host:1", "")); len(completes) < want {
			t.Fatalf("only %d bytes of completions: not all grabs got a job", len(completes))
		}
		c.Send("complete", together, completes)
		c.Send("coalesce", together, coalesced)
		c.Send("echo", together, bytes.Repeat(request(packet.EchoReq, "x"), together))
	}
	c.Want("submit", 2.4)
	c.Want("grab", 0.3)
	c.Want("complete", 1.4)
	c.Want("coalesce", 3.4)
	c.Want("echo", 0.2)
}
