package replica

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/engine"
)

// contents are stores without jobs, each with data that users would miss.
var contents = []struct {
	name string // as messages have it
	ops  []core.Op
}{
	{"schedules", []core.Op{&core.PutSchedule{Schedule: core.Schedule{
		Name: "nightly", Every: time.Hour, Job: &core.Job{Queue: "q", Type: "q"},
	}}}},
	{
		"limits of queues",
		[]core.Op{&core.PutLimit{Limit: core.Limit{
			Selector: core.InQueue("q", core.ScopeQueue, ""), Throttle: core.Throttle{Leased: 3},
		}}},
	},
	{"settings of queues", []core.Op{&core.CreateQueue{Queue: "q"}, &core.PauseQueue{Queue: "q", Paused: true}}},
	{"batches", []core.Op{&core.OpenBatch{Description: "import"}}},
	{"documents", []core.Op{&core.WriteDocuments{Documents: []core.MetaEntry{{Name: "d", Value: []byte("v")}}}}},
	{"audit log", []core.Op{&core.WriteMeta{Entries: []core.MetaEntry{{Name: "audit/1", Value: []byte("v")}}}}},
}

// frontendContent is an Options.Content.
func frontendContent(name string) string {
	if strings.HasPrefix(name, "audit/") {
		return "audit log"
	}
	return ""
}

// aloneWith makes the store of a single broker that has done ops.
func aloneWith(t *testing.T, dir string, ops ...core.Op) {
	t.Helper()
	e, err := engine.Open(engine.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range core.DoOnce(e, core.Internal, ops...) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	shutdown(t, e)
}

func TestStoreWithoutJobsIsNotReplaced(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "n1", "n2", "n3")
	c.change = func(o *Options) { o.Content = frontendContent }
	c.start("n1", "n2", "n3")
	first, _, e := c.leader()
	victim := c.follower(first)
	c.caughtUp()
	c.stop(victim)
	for _, x := range contents {
		c.dirs[victim] = filepath.Join(t.TempDir(), victim)
		aloneWith(t, c.dirs[victim], x.ops...)
		n, err := c.open(victim)
		if err == nil {
			c.nodes[victim] = n
			t.Fatalf("a store with %s was replaced", x.name)
		}
		if !strings.Contains(err.Error(), "this node has "+x.name+" of its own") {
			t.Errorf("a store with %s: %v", x.name, err)
		}
	}
	shutdown(t, e)
}

// Counters and measurements are not a reason to refuse a store.
func TestStoreWithOnlyCountersIsReplaced(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "n1", "n2", "n3")
	for _, id := range []string{"n2", "n3"} {
		aloneWith(t, c.dirs[id], &core.Submit{Job: &core.Job{ID: "j", Queue: "q", Type: "q", Origin: core.Faktory}},
			&core.Purge{Queue: "q"}, &core.WriteMeta{Entries: []core.MetaEntry{{Name: "x/key", Value: []byte("v")}}})
	}
	c.start("n1", "n2", "n3")
	_, _, e := c.leader()
	submit(t, e, 0, 3, 10)
	shutdown(t, e)
}

// One node with a used store founds the cluster; two of them are refused.
func TestNodeWithAUsedStoreFoundsTheCluster(t *testing.T) {
	t.Parallel()
	members := []Member{{ID: "n1"}, {ID: "n2"}, {ID: "n3"}}
	hellos := []hello{{Node: "n1", Entries: 5}, {Node: "n2"}, {Node: "n3", Content: "schedules"}}
	if id, err := chooseFounder(members, hellos); id != "n3" || err != nil {
		t.Error(id, err)
	}
	hellos[1].Content = "jobs"
	const want = "node n2 has jobs of its own and node n3 has schedules"
	if id, err := chooseFounder(members, hellos); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(id, err)
	}
}

// A node with a used store follows no founder, even if its store was still empty when the founder asked first.
func TestNodeWithAUsedStoreFollowsNoFounder(t *testing.T) {
	t.Parallel()
	for _, x := range contents {
		n := &Node{o: Options{ID: "n1", Dir: t.TempDir(), Content: frontendContent}.withDefaults()}
		n.log = newLogger(n.o.Log)
		aloneWith(t, n.o.Dir, x.ops...)
		if err := n.openStore(); err != nil {
			t.Fatal(err)
		}
		err := n.promise(&request{Cluster: "c"}, &greeting{})
		if err == nil || !strings.Contains(err.Error(), x.name) || n.stage != isNew {
			t.Errorf("a store with %s: %v", x.name, err)
		}
		if err := n.store.Load().Close(); err != nil {
			t.Error(err)
		}
	}
}
