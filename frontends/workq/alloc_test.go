package workq

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"broker/core"
	"broker/frontends/frontendtest"
)

// Limits the allocations of each step in the life of a job. Allocation counts are stable across machines; times are
// not.
func TestAllocationsOfAJob(t *testing.T) {
	c := frontendtest.NewCounter(t, plain)
	const together, rounds = 64, 60
	body := strings.Repeat("x", 256)
	for round := range c.Rounds(rounds) {
		var adds, completes, deletes []byte
		for i := range together {
			id := "0000" + core.Alias(uint64(round*together + i))[4:] // not an alias, but a valid UUIDv4
			adds = fmt.Appendf(adds, "add %s queue 60000 600000 %d\r\n%s\r\n", id, len(body), body)
			completes = fmt.Appendf(completes, "complete %s 2\r\nok\r\n", id)
			deletes = fmt.Appendf(deletes, "delete %s\r\n", id)
		}
		c.Send("add", together, adds)
		leased := c.Send("lease", together, bytes.Repeat([]byte("lease queue 0\r\n"), together))
		if n := bytes.Count(leased, []byte("+OK 1\r\n")); n != together {
			t.Fatalf("%d jobs leased of %d", n, together)
		}
		for _, step := range []struct {
			name string
			in   []byte
		}{{"complete", completes}, {"delete", deletes}} {
			if said := c.Send(step.name, together, step.in); string(said) != strings.Repeat("+OK\r\n", together) {
				t.Fatalf("%s answered %.80q", step.name, said)
			}
		}
		c.Send("empty lease", together, bytes.Repeat([]byte("lease queue 0\r\n"), together))
	}
	c.Want("add", 3.5)
	c.Want("lease", 0.2)
	c.Want("complete", 4.4)
	c.Want("delete", 3.4)
	c.Want("empty lease", 0.2)
}
