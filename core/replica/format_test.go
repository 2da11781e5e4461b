package replica

import (
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"broker/core/internal/record"
)

func TestProgramsThatAreTooOldAreRefused(t *testing.T) {
	t.Parallel()
	old, present, newer := formats{}, formats{Reads: 1, Needs: 1, Version: "v1"}, formats{Reads: 2, Needs: 1, Version: "v2"}
	newest := formats{Reads: 3, Needs: 2, Version: "v3"}
	for _, c := range []struct {
		own, other formats
		upgrade    string
	}{
		{present, old, ""},
		{old, present, ""},
		{present, present, ""},
		{present, newer, ""},
		{newer, newest, ""},
		{present, newest, "upgrade n1"},
		{newest, present, "upgrade n2"},
		{newest, old, "upgrade n2"},
		{old, newest, "upgrade n1"},
	} {
		got := tooOld(c.own, c.other, "n1", "n2")
		if (got == "") != (c.upgrade == "") || !strings.HasSuffix(got, c.upgrade) {
			t.Errorf("%+v and %+v: %q, want %q", c.own, c.other, got, c.upgrade)
		}
	}
}

// An entry of a newer format stops the node: it needs a newer program, and not an empty folder.
func TestEntryOfANewerFormatAsksForAnUpgrade(t *testing.T) {
	t.Parallel()
	for _, data := range [][]byte{{wholeEntry, record.Version + 1, 0}, {77}} {
		c := newCluster(t, "n1", "n2", "n3")
		c.start("n1", "n2", "n3")
		n, _, e := c.leader()
		if err := n.raft.Apply(data, 0).Error(); err != nil {
			t.Fatal(err)
		}
		err := <-n.Failed()
		if text := err.Error(); !strings.Contains(text, "upgrade the program of this node") || strings.Contains(text, "empty folder") {
			t.Errorf("% x: %v", data, err)
		}
		e.Abandon()
		shutdown(t, e)
		if n.raft.State() == raft.Leader {
			c.stop(n.o.ID)
		}
	}
}
