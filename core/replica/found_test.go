package replica

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"broker/core/engine"
)

// Three new nodes of two versions found no cluster. One of them reports why, whichever node would be the founder. With
// one version, the same folders form a cluster.
func TestClusterIsFoundedWithOneVersion(t *testing.T) {
	t.Parallel()
	for _, other := range []string{"n1", "n3"} {
		c := newCluster(t, "n1", "n2", "n3")
		c.change = func(o *Options) {
			if o.Version = "v1.2.0"; o.ID == other {
				o.Version = "v1.3.0"
			}
		}
		var enough context.CancelFunc // other nodes keep waiting for the refused node
		c.opening, enough = context.WithCancel(t.Context())
		refused := 0
		c.openAll(func(_ string, err error) {
			if errors.Is(err, errVersionsDiffer) && strings.Contains(err.Error(), "v1.2.0") &&
				strings.Contains(err.Error(), "v1.3.0") {
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

// Nodes with an even number of members in their list found no cluster.
func TestClusterIsFoundedWithAnOddNumberOfVoters(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "n1", "n2")
	if _, err := c.open("n1"); !errors.Is(err, errEvenVoters) {
		t.Errorf("%v", err)
	}
}

// A program of an older version, which does not compare versions, cannot found a cluster with a newer node either.
func TestNewNodeDoesNotFollowAFounderOfAnotherVersion(t *testing.T) {
	t.Parallel()
	n := &Node{o: Options{ID: "n2", Version: "v1.3.0", Dir: t.TempDir()}}
	err := n.promise(&request{Op: opFound, Cluster: "c"}, &greeting{From: "n1", formats: formats{Version: "v1.2.0"}})
	if !errors.Is(err, errVersionsDiffer) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(n.dir(nodeFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the node belongs to a cluster: %v", err)
	}
}

// A founder may crash at any point. After a restart it continues, and its store, which is the only copy, can also be
// detached.
func TestCrashedFounderKeepsItsJobs(t *testing.T) {
	t.Parallel()
	for step := range 3 {
		for _, detached := range []bool{false, true} {
			c := newCluster(t, "n1", "n2", "n3")
			alone, err := engine.Open(engine.Options{Dir: c.dirs["n3"]})
			if err != nil {
				t.Fatal(err)
			}
			submit(t, alone, 0, 50, 100)
			shutdown(t, alone)
			crash := errors.New("crash")
			c.change = func(o *Options) {
				o.interrupt = func(at int) error {
					if at == step {
						return crash
					}
					return nil
				}
			}
			c.openAll(func(id string, err error) {
				if id != "n3" || !errors.Is(err, crash) {
					t.Fatalf("%s: %v", id, err)
				}
			}, "n1", "n2", "n3")
			if detached {
				if _, err := Detach(c.dirs["n3"]); err != nil {
					t.Fatalf("step %d: %v", step, err)
				}
				alone, err = engine.Open(engine.Options{Dir: c.dirs["n3"]})
			} else {
				c.change = nil
				c.start("n3")
				_, _, alone = c.leader()
			}
			if err != nil {
				t.Fatal(err)
			}
			if n := jobs(t, alone); n != 50 {
				t.Errorf("step %d: %d jobs", step, n)
			}
			shutdown(t, alone)
			c.stopAll()
		}
	}
}

// A founder that has only announced that it founds a cluster is still new, whatever has happened to the other nodes
// since.
func TestFounderThatOnlyAnnouncedItselfIsNew(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "n1", "n2", "n3")
	if err := os.MkdirAll(filepath.Join(c.dirs["n2"], raftDir), 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"node":"n2","cluster":"0123456789abcdef","list":"","begun":true}`
	if err := os.WriteFile(filepath.Join(c.dirs["n2"], raftDir, nodeFile), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c.start("n1", "n2", "n3")
	_, _, e := c.leader()
	submit(t, e, 0, 1, 10)
	if of := c.nodes["n2"].clusterID(); of == "0123456789abcdef" || of != c.nodes["n1"].clusterID() {
		t.Errorf("n2 is of cluster %s", of)
	}
	shutdown(t, e)
}
