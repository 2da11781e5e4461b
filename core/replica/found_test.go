package replica

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
)

// Three new nodes of two versions found no cluster. One of them says why, whichever would be the founder, and the same folders
// make a cluster with one version.
func TestClusterIsFoundedWithOneVersion(t *testing.T) {
	t.Parallel()
	for _, other := range []string{"n1", "n3"} {
		c := newCluster(t, "n1", "n2", "n3")
		c.change = func(o *Options) {
			if o.Version = "v1.2.0"; o.ID == other {
				o.Version = "v1.3.0"
			}
		}
		var enough context.CancelFunc // the others go on waiting for the one that was refused
		c.opening, enough = context.WithCancel(t.Context())
		refused := 0
		c.openAll(func(_ string, err error) {
			if errors.Is(err, ErrVersionsDiffer) && strings.Contains(err.Error(), "v1.2.0") && strings.Contains(err.Error(), "v1.3.0") {
				refused++
			}
			enough()
		}, "n1", "n2", "n3")
		enough()
		if refused == 0 || len(c.nodes) > 0 {
			t.Errorf("%d nodes say that the versions differ, %d are members", refused, len(c.nodes))
		}
		c.opening = t.Context()
		c.change = func(o *Options) { o.Version = "v1.2.0" }
		c.start("n1", "n2", "n3")
		_, _, e := c.leader()
		submit(t, e, 0, 1, 10)
		shutdown(t, e)
	}
}

// A program of an older version, which does not compare versions, cannot found a cluster with a newer node either.
func TestNewNodeDoesNotFollowAFounderOfAnotherVersion(t *testing.T) {
	t.Parallel()
	n := &Node{o: Options{ID: "n2", Version: "v1.3.0", Dir: t.TempDir()}}
	err := n.promise(&request{Op: opFound, Cluster: "c"}, &greeting{From: "n1", formats: formats{Version: "v1.2.0"}})
	if !errors.Is(err, ErrVersionsDiffer) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(n.dir(nodeFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the node belongs to a cluster: %v", err)
	}
}
