package replica

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"broker/core"
	"broker/core/engine"
)

// hang replaces a stopped node: it accepts connections and never answers.
func (c *cluster) hang(id string) {
	c.t.Helper()
	m, _ := find(c.members, id)
	ln, err := net.Listen("tcp", m.Address)
	if err != nil {
		c.t.Fatal(err)
	}
	go func() { // ends with the test
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			c.t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	c.t.Cleanup(func() { _ = ln.Close() })
}

// Leadership is not transferred to a node that cannot lead, because nothing is accepted during the attempt.
func TestTransferSkipsNodesThatCannotLead(t *testing.T) {
	t.Parallel()
	c := startedCluster(t)
	n, lead, e := c.leader()
	c.caughtUp()
	deaf := c.follower(n)
	c.stop(deaf)
	c.hang(deaf)
	if err := n.Transfer(t.Context(), deaf); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("the lead was handed to a node that does not answer: %v", err)
	}
	late := Member{ID: "n4", Address: freeAddress(t)}
	if err := n.Add(late); err != nil {
		t.Fatal(err)
	}
	c.members = append(c.members, late)
	c.dirs["n4"] = filepath.Join(t.TempDir(), "n4")
	c.change = func(o *Options) { o.Join = true }
	c.start("n4")
	if err := n.Transfer(t.Context(), "n4"); err == nil || !strings.Contains(err.Error(), "has no vote") {
		t.Errorf("the lead was handed to a node without a vote: %v", err)
	}
	submit(t, e, 0, 1, 10)
	select {
	case <-lead.Lost():
		t.Error("the lead was lost")
	default:
	}
	shutdown(t, e)
}

// During a transfer, raft refuses entries, which ends the engine. If the transfer fails, a new engine starts on the
// same node.
func TestLeaderContinuesAfterAFailedTransfer(t *testing.T) {
	t.Parallel()
	c := startedCluster(t)
	n, lead, e := c.leader()
	submit(t, e, 0, 10, 10)
	c.caughtUp()
	deaf := c.follower(n)
	c.stop(deaf)
	c.hang(deaf)
	m, _ := find(c.members, deaf)
	failed := make(chan error)
	go func() { // until it has failed; raft may give a transfer up before an entry comes
		err := errors.New("no transfer was tried")
		for err != nil && !e.Stopped() {
			err = n.raft.LeadershipTransferToServer(raft.ServerID(m.ID), raft.ServerAddress(m.Address)).Error()
		}
		failed <- err
	}()
	submitUntilStopped(t, e)
	<-lead.Lost()
	if err := <-failed; err == nil {
		t.Fatal("the lead was handed to a node that does not answer")
	}
	shutdown(t, e)
	_, _, e = c.leader() // on a busy machine another node may have been elected meanwhile
	submit(t, e, 20, 10, 10)
	if n := jobs(t, e); n < 20 {
		t.Errorf("%d jobs", n)
	}
	shutdown(t, e)
}

// submitUntilStopped submits jobs until one cannot be committed.
func submitUntilStopped(t *testing.T, e *engine.Engine) {
	t.Helper()
	client := e.Open(core.ClientOptions{Protocol: core.Internal, Wake: func() {}})
	eventually(t, func() string {
		if e.Stopped() {
			return ""
		}
		e.Do(client, []core.Op{&core.Submit{Job: &core.Job{Queue: "other", Type: "t"}}}, nil)
		return "the engine works on"
	})
}
