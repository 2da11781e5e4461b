package cluster_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"broker/integration/harness"
	"broker/integration/server"
)

// refusedNode starts a node that must exit with an error that has all words in it.
func refusedNode(t *testing.T, data string, args []string, words ...string) {
	t.Helper()
	b, err := server.NewBroker(t.TempDir(), server.BrokerOptions{Binary: harness.Binary(t), Args: args})
	check(t, err)
	if data != "" {
		b.Data = data
	}
	check(t, b.Spawn())
	defer b.Process.Kill()
	code, err := b.Wait(harness.Patience)
	if err != nil {
		t.Errorf("%v: %v", args, err)
	}
	for _, word := range words {
		if code == 0 || !strings.Contains(b.Output(), word) {
			t.Errorf("%v: exit code %d, no word of %q:\n%s", args, code, word, b.Tail())
		}
	}
}

const three = "n1=127.0.0.1:1,n2=127.0.0.1:2,n3=127.0.0.1:3"

func TestSettingsThatMakeNoClusterAreRefused(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	for _, c := range []struct {
		args []string
		word string
	}{
		{[]string{"--cluster", three}, "--cluster requires --node"},
		{[]string{"--node", "n1"}, "--node requires --cluster"},
		{[]string{"--node", "n4", "--cluster", three}, "n4 is not one of the members"},
		{[]string{"--node", "n1", "--cluster", "n1=127.0.0.1:47651,n2=127.0.0.1:47652"}, "odd number of voters"},
		{[]string{"--node", "n1", "--cluster", "n1=127.0.0.1:1,n1=127.0.0.1:2,n3=127.0.0.1:3"}, "n1 is listed twice"},
		{[]string{"--node", "n1", "--cluster", "n1=127.0.0.1:1,n2=127.0.0.1:1,n3=127.0.0.1:3"}, "same address"},
		{[]string{"--node", "n1", "--cluster", "one"}, "not id=host:port"},
		{[]string{"--node", "n1", "--cluster", "n1=10.0.0.1:1,n2=10.0.0.2:1,n3=10.0.0.3:1"}, "other hosts can reach"},
		{[]string{"--node", "n1", "--cluster", three, "--durability", "none"}, "use sync"},
	} {
		refusedNode(t, "", c.args, c.word)
	}
}

func TestNodesThatDoNotBelongAreRefused(t *testing.T) {
	t.Parallel()
	c := start(t)
	other := start(t)
	node := func(list string) []string { return []string{"--node", "n3", "--cluster", list} }
	refusedNode(t, "", node(c.list), "address already in use", "another node")

	if code := terminate(t, c.nodes[2]); code != 0 {
		t.Errorf("exit code %d", code)
	}
	wrong := strings.Replace(c.list, "n2=127.0.0.1:", "n2=localhost:", 1)
	refusedNode(t, "", node(wrong), "lists of members differ")
	refusedNode(t, c.nodes[2].Data, []string{"--node", "n4", "--cluster", strings.Replace(c.list, "n3=", "n4=", 1)},
		"belongs to node n3")
	refusedNode(t, c.nodes[2].Data, nil, "part of a cluster")

	if code := terminate(t, other.nodes[2]); code != 0 {
		t.Errorf("exit code %d", code)
	}
	refusedNode(t, other.nodes[2].Data, node(c.list), "is that of a member of cluster", "belongs to cluster")
	check(t, os.RemoveAll(filepath.Join(other.nodes[2].Data, "raft")))
	refusedNode(t, other.nodes[2].Data, node(c.list), "the log that belongs to it is missing", "empty folder")

	own := harness.Start(t, harness.Options{})
	g, err := dialGearman(own.BrokerServer)
	check(t, err)
	check(t, g.submit("a"))
	if code, _ := own.Terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	refusedNode(t, own.Data, node(c.list), "jobs of its own")
	c.restart(2) // none of them has harmed it

	ran := harness.Start(t, harness.Options{}) // a broker that only ran has nothing that anybody would miss
	for _, n := range []*server.BrokerServer{ran.BrokerServer, c.nodes[2]} {
		if code := terminate(t, n); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
	c.nodes[2].Data = ran.Data
	c.restart(2)
}
