package faktory

import (
	"strings"
	"testing"

	"broker/core"
	"broker/frontends/frontendtest"
)

// openBatch opens a batch and returns its id.
func openBatch(t *testing.T, c *frontendtest.Client) string {
	t.Helper()
	c.Send("BATCH NEW {}\r\n")
	return string(bulk(t, c))
}

// wantBatch checks that an id names a batch and that the server reports it under this id.
func wantBatch(t *testing.T, c *frontendtest.Client, bid string) {
	t.Helper()
	c.Send("BATCH STATUS " + bid + "\r\n")
	if got := object(t, c)["bid"]; got != bid {
		t.Errorf("batch %s is reported as %v", bid, got)
	}
}

func wantNoBatch(t *testing.T, c *frontendtest.Client, bid string) {
	t.Helper()
	c.Send("BATCH STATUS " + bid + "\r\n")
	c.Want("-ERR no such batch " + bid + ": No such batch is known here\r\n")
}

func TestBatchIDsDoNotRepeatInANewStore(t *testing.T) {
	t.Parallel()
	s, other := setup(t), setup(t)
	a, b := dial(s, "a", ""), dial(other, "b", "")
	mine, theirs := openBatch(t, a), openBatch(t, b)
	if mine == theirs {
		t.Fatalf("two stores have a batch %s", mine)
	}
	wantBatch(t, a, mine)
	wantNoBatch(t, a, theirs)
	wantNoBatch(t, a, "b-0000000000001")
	prefix := mine[:strings.LastIndexByte(mine, '-')]
	wantNoBatch(t, a, prefix)
	wantNoBatch(t, a, mine[:len(prefix)]+"-0"+mine[len(prefix)+1:])
	s.Restart()
	a = dial(s, "again", "")
	wantBatch(t, a, mine)
	if next := openBatch(t, a); next == mine || !strings.HasPrefix(next, prefix+"-") {
		t.Errorf("after a restart the next batch is %s, after %s", next, mine)
	}
}

// Batches that were opened before ids had a prefix keep their ids.
func TestOldBatchIDsStayValid(t *testing.T) {
	t.Parallel()
	s := setup(t)
	opened := core.DoOnce(s.Broker, core.Faktory, &core.OpenBatch{Tag: 1, OpenUntil: s.Clock.Now().Add(uncommittedFor)})
	old := new(batchIDs).format(opened[0].Seq)
	if len(old) != len("b-0000000000001") {
		t.Fatalf("an old id is %s", old)
	}
	c := dial(s, "client", "")
	wantBatch(t, c, old)
	fresh := openBatch(t, c)
	wantBatch(t, c, old)
	wantBatch(t, c, fresh)
	c.Send("BATCH NEW {\"parent_bid\":\"" + old + "\"}\r\n")
	child := string(bulk(t, c))
	c.Send("BATCH STATUS " + child + "\r\n")
	if got := object(t, c)["parent_bid"]; got != old {
		t.Errorf("the parent is reported as %v, want %s", got, old)
	}
	s.Restart()
	c = dial(s, "again", "")
	wantBatch(t, c, old)
	wantBatch(t, c, fresh)
}
