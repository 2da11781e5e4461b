package replica

import (
	"bytes"
	"testing"

	"broker/core"
	"broker/core/internal/record"
)

func TestRecentEntriesMatchTheStore(t *testing.T) {
	t.Parallel()
	c := startedCluster(t)
	n, _, e := c.leader()
	large := bytes.Repeat([]byte("b"), 3*partBytes) // travels in parts
	for _, body := range [][]byte{[]byte("a"), large, []byte("c"), large, []byte("d")} {
		for _, r := range core.DoOnce(e, core.Internal, &core.Submit{Job: &core.Job{Queue: "q", Body: body}}) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
		e.Flush()
	}
	read := func(after uint64) (got []record.Position) {
		t.Helper()
		if err := n.recent(after, func(entry []byte) error {
			d, err := record.DecodeEntry(entry)
			if err == nil {
				got = append(got, d.Position)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return got
	}
	all := read(0)
	if end := n.store.Load().Position(); len(all) < 5 || all[len(all)-1].Number != end.Number {
		t.Fatalf("entries %+v, the store is at %+v", all, end)
	}
	for i := range all {
		if got := read(all[i].Number); len(got) != len(all)-1-i {
			t.Errorf("%d entries after %d, not %d", len(got), all[i].Number, len(all)-1-i)
		}
	}
}
