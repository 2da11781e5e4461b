package replica

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"broker/core"
	"broker/core/engine"
	"broker/core/internal/record"
)

func TestProgramsThatAreTooOldAreRefused(t *testing.T) {
	t.Parallel()
	present, newer := formats{Reads: 1, Needs: 1, Version: "v1"}, formats{Reads: 2, Needs: 1, Version: "v2"}
	newest := formats{Reads: 3, Needs: 2, Version: "v3"}
	for _, c := range []struct {
		own, other formats
		upgrade    string
	}{
		{present, present, ""},
		{present, newer, ""},
		{newer, newest, ""},
		{present, newest, "upgrade n1"},
		{newest, present, "upgrade n2"},
	} {
		got := tooOld(c.own, c.other, "n1", "n2")
		if (got == "") != (c.upgrade == "") || !strings.HasSuffix(got, c.upgrade) {
			t.Errorf("%+v and %+v: %q, want %q", c.own, c.other, got, c.upgrade)
		}
	}
}

// An entry of a newer format stops the node: it needs a newer program, not an empty folder.
func TestEntryOfANewerFormatAsksForAnUpgrade(t *testing.T) {
	t.Parallel()
	for _, data := range [][]byte{{wholeEntry, record.NewestFormat + 1, 0}, {77}} {
		c := startedCluster(t)
		n, _, e := c.leader()
		if err := n.raft.Apply(data, 0).Error(); err != nil {
			t.Fatal(err)
		}
		err := <-n.Failed()
		if text := err.Error(); !strings.Contains(text, "upgrade the program of this node") ||
			strings.Contains(text, "empty folder") {
			t.Errorf("% x: %v", data, err)
		}
		e.Abandon()
		shutdown(t, e)
		if n.raft.State() == raft.Leader {
			c.stop(n.o.ID)
		}
	}
}

// wantFormat waits until the last entry of a node's store has a format, while new entries arrive.
func (c *cluster) wantFormat(e *engine.Engine, id string, format int) {
	c.t.Helper()
	eventually(c.t, func() string {
		if have := c.nodes[id].formatInForce(); have != format {
			core.DoOnce(e, core.Internal, &core.WriteMeta{Entries: []core.MetaEntry{{Name: "x", Value: []byte("v")}}})
			return fmt.Sprintf("format %d is in force at %s, want %d", have, id, format)
		}
		return ""
	})
}

// An older format would lose some fields of the first jobs of a new cluster.
func TestANewClusterBeginsWithTheNewestFormat(t *testing.T) {
	t.Parallel()
	c := startedCluster(t)
	n, _, e := c.leader()
	submit(t, e, 0, 1, 10)
	if got := n.formatInForce(); got != record.NewestFormat {
		t.Errorf("the first entries have format %d", got)
	}
	shutdown(t, e)
}

// What was in a store before it became part of a cluster counts too: all members must be able to read it.
func TestContentOfTheFirstStoreSetsTheFormat(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "n1", "n2", "n3")
	c.change = func(o *Options) {
		if o.ID == "n2" {
			o.newestFormat = 3
		}
	}
	alone, err := engine.Open(engine.Options{Dir: c.dirs["n1"]})
	if err != nil {
		t.Fatal(err)
	}
	job := &core.Job{Queue: "q", OnBroken: core.BrokenFails}
	if r := core.DoOnce(alone, core.HTTP, &core.Submit{Job: job})[0]; r.Kind != core.Submitted {
		t.Fatal(r.Err)
	}
	shutdown(t, alone)
	var enough context.CancelFunc // the other nodes keep waiting
	c.opening, enough = context.WithCancel(t.Context())
	refused := 0
	c.openAll(func(_ string, err error) {
		if strings.Contains(err.Error(), "which needs format 4: upgrade n2") {
			refused++
		}
		enough()
	}, "n1", "n2", "n3")
	enough()
	if refused == 0 {
		t.Error("a program that cannot read the store founded a cluster with it")
	}
	c.opening, c.change = t.Context(), nil
	c.start("n1", "n2", "n3")
	n, _, e := c.leader()
	submit(t, e, 0, 1, 10)
	if n.formatInForce() != record.NewestFormat {
		t.Errorf("format %d is in force", n.formatInForce())
	}
	shutdown(t, e)
}

// A cluster is upgraded one node after another. Its leader writes the format that the oldest program reads, until all
// members, including those that did not answer at first, have reported that they read the newer format.
func TestLeaderWritesTheFormatThatAllMembersRead(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "n1", "n2", "n3")
	old := map[string]bool{"n1": true, "n2": true, "n3": true}
	c.change = func(o *Options) {
		if o.newestFormat = 0; old[o.ID] {
			o.newestFormat = 1
		}
	}
	c.start("n1", "n2", "n3")
	n, _, e := c.leader()
	submit(t, e, 0, 10, 10)
	c.caughtUp()
	for i, upgraded := 0, 0; upgraded < 2; i++ {
		id := c.members[i].ID
		if id == n.o.ID {
			continue
		}
		c.stop(id)
		submit(t, e, 100*(i+1), 10, 10)
		old[id] = false
		c.start(id)
		c.caughtUp()
		upgraded++
	}
	leader := n.o.ID
	n, e = c.next(n, e, c.follower(n)) // a new program leads, and the old one follows
	submit(t, e, 1000, 10, 10)
	n.raiseFormat(n.askOthers(t.Context(), callTimeout, nil))
	c.wantFormat(e, n.o.ID, 1)
	c.stop(leader)
	n.raiseFormat(n.askOthers(t.Context(), statusWithin, nil)) // it is away, and may come back with its old program
	submit(t, e, 1100, 10, 10)
	c.wantFormat(e, n.o.ID, 1)
	old[leader] = false
	c.start(leader)
	for _, m := range c.members {
		c.wantFormat(e, m.ID, record.NewestFormat)
	}
	have := jobs(t, e)
	if have != 50 {
		t.Errorf("%d jobs, want 50", have)
	}
	c.caughtUp()

	// There is no way back: the others refuse the old program, even if its store were one that it can read.
	c.stop(leader)
	old[leader] = true
	if o, err := c.open(leader); err == nil {
		c.nodes[leader] = o
		t.Error("a program that does not read the format in force became a member")
	} else if !strings.Contains(err.Error(),
		fmt.Sprintf("which needs format %d: upgrade %s", record.NewestFormat, leader)) {
		t.Error(err)
	}
	for id := range c.nodes {
		if id != n.o.ID {
			n, e = c.next(n, e, id)
			break
		}
	}
	submit(t, e, 2000, 1, 10)
	if n.formatInForce() != record.NewestFormat {
		t.Errorf("another leader writes format %d", n.formatInForce())
	}
	shutdown(t, e)
}
