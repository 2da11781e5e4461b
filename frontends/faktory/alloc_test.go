package faktory

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"broker/frontends/frontendtest"
)

// Limits the allocations of each request. Allocation counts are stable across machines; times are not.
func TestAllocationsOfAJob(t *testing.T) {
	c := frontendtest.NewCounter(t, plain)
	const together, rounds = 64, 60
	body := strings.Repeat("x", 256)
	c.Send("", 1, []byte("HELLO {\"wid\":\"worker\",\"v\":2}\r\n"))
	for round := range c.Rounds(rounds) {
		var pushes, acks []byte
		for i := range together {
			jid := fmt.Sprintf("%016d", round*together+i)
			pushes = fmt.Appendf(pushes,
				"PUSH {\"jid\":%q,\"queue\":\"default\",\"jobtype\":\"SomeJob\",\"args\":[1,%q],"+
					"\"created_at\":\"2030-01-01T00:00:00.123456789Z\",\"retry\":25}\r\n", jid, body)
			acks = fmt.Appendf(acks, "ACK {\"jid\":%q}\r\n", jid)
		}
		if said := c.Send("push", together, pushes); bytes.Count(said, []byte("+OK\r\n")) != together {
			t.Fatalf("answered %.80q", said)
		}
		fetched := c.Send("fetch", together, bytes.Repeat([]byte("FETCH default\r\n"), together))
		if n := bytes.Count(fetched, []byte(`"jid":"`)); n != together {
			t.Fatalf("%d jobs fetched of %d: %.80q", n, together, fetched)
		}
		if said := c.Send("ack", together, acks); string(said) != strings.Repeat("+OK\r\n", together) {
			t.Fatalf("answered %.80q", said)
		}
		c.Send("beat", together, bytes.Repeat([]byte("BEAT {\"wid\":\"worker\"}\r\n"), together))
	}
	c.Want("push", 3.5)
	c.Want("fetch", 0.3)
	c.Want("ack", 2.4)
	c.Want("beat", 6.3)
}
