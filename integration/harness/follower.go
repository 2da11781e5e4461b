package harness

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"broker/integration/server"
)

// throughFollower says that tests reach the broker through a node that follows, of a cluster of three.
func throughFollower() bool { return os.Getenv("BROKER_FOLLOWER") == "1" }

// What nodes log.
const (
	leads  = "serving clients as the leader"
	linked = "linked to the leader, serving clients"
)

// startFollower starts a cluster, and returns a node that follows.
func startFollower(t testing.TB, o Options) *Broker {
	t.Helper()
	var members []string
	for i := range 3 {
		members = append(members, fmt.Sprintf("n%d=%s", i+1, freeAddr(t)))
	}
	list := strings.Join(members, ",")
	var nodes []*Broker
	for i := range 3 {
		own := o
		own.Args = slices.Clone(o.Args)
		for k, arg := range own.Args {
			if _, _, err := net.SplitHostPort(arg); err == nil && i > 0 { // the test knows the first node's address
				own.Args[k] = freeAddr(t)
			}
		}
		own.Args = append(own.Args, "--node", fmt.Sprint("n", i+1), "--cluster", list)
		own.Env = append(slices.Clone(o.Env), "BROKER_CLUSTER_ELECTION_TIMEOUT=3s")
		nodes = append(nodes, Prepare(t, own))
		if err := nodes[i].Spawn(); err != nil {
			t.Fatal(err)
		}
	}
	Eventually(t, func() string {
		for _, n := range nodes {
			if strings.Contains(n.Output(), leads) {
				return ""
			}
		}
		return "no node leads"
	})
	first, handed := nodes[0], -1
	Eventually(t, func() string {
		led := strings.LastIndex(first.Output(), leads)
		switch {
		case led < strings.LastIndex(first.Output(), linked):
			return ""
		case led > handed: // it leads, perhaps again
			handed = led
			first.Process.Stop(time.Minute) // hands the lead over
			if err := first.Spawn(); err != nil {
				t.Fatal(err)
			}
		}
		return "the node has no link to the leader"
	})
	return first
}

func freeAddr(t testing.TB) string {
	t.Helper()
	address, err := server.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return address
}
