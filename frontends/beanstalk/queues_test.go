package beanstalk

import (
	"fmt"
	"strings"
	"testing"

	"broker/access"
	"broker/core"
)

func TestListsOfManyTubesServeOthersInBetween(t *testing.T) {
	t.Parallel()
	s, _ := setupCounting(t, Options{}, unrestricted)
	const tubes = 2*queuesOfStep + 3
	for i := range tubes {
		core.DoOnce(s.Broker, core.Beanstalk,
			&core.Submit{Job: &core.Job{Queue: fmt.Sprint("tube-", i), Priority: 1 << 31}})
	}
	c, asking := openTurned(s)
	other := s.Dial("bystander")
	ask := func(command string) string {
		from := c.out.Len()
		if n := asking.Feed([]byte(command + "\r\nlist-tube-used\r\n")); n != len(command)+2 {
			t.Errorf("%s: %d bytes of input are taken before it is answered", command, n)
		}
		turns := 1
		for ; c.out.Len() == from; turns++ {
			other.Send("list-tube-used\r\n")
			other.Want("USING default\r\n")
			c.await(t)
			asking.Deliver()
		}
		if turns != 3 {
			t.Errorf("%s took %d turns", command, turns)
		}
		return string(c.out.Buf()[from:])
	}
	if got := ask("list-tubes"); strings.Count(got, "\n- tube-") != tubes || strings.Count(got, "\n- default\n") != 1 {
		t.Errorf("%d tubes are listed", strings.Count(got, "\n- "))
	}
	if got := ask("stats"); !strings.Contains(got, fmt.Sprintf("\ncurrent-tubes: %d\n", tubes+1)) {
		t.Errorf("stats: %s", got)
	}
}

func TestListOfTubesNeedsRead(t *testing.T) {
	t.Parallel()
	control := &access.Control{}
	control.Load([]access.Entry{{Name: "shop", Grants: []access.Grant{{Role: access.Produce}}}})
	s, _ := setupCounting(t, Options{}, func(b core.Broker) *access.Guard {
		return access.NewGuard(b, control, core.Beanstalk, "shop")
	})
	c := s.Dial("stranger")
	c.Send("list-tubes\r\nlist-tube-used\r\n")
	c.Want("UNKNOWN_COMMAND\r\nUSING default\r\n")
}

func TestStatsOfJobsInQueuesWithOtherNamesStayReadable(t *testing.T) {
	t.Parallel()
	s, _ := setupCounting(t, Options{}, unrestricted)
	c := s.Dial("asker")
	for queue, want := range map[string]string{
		"a: b\nstate: x": `"a_ b_state_ x"`, "größe": `"gr__e"`, "1e5": `"1e5"`, "10.1/2": "10.1/2",
	} {
		r := core.DoOnce(s.Broker, core.HTTP, &core.Submit{Tag: 1, Job: &core.Job{Queue: queue}})
		c.Send(fmt.Sprintf("stats-job %d\r\n", r[0].Seq))
		if got := c.ReadUntil("\n\r\n"); !strings.Contains(got, "\ntube: "+want+"\nstate: ready\n") {
			t.Errorf("queue %q: %s", queue, got)
		}
	}
}
