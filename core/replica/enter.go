package replica

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hashicorp/raft"

	"broker/core/engine"
	"broker/core/internal/store"
)

// enterEvery is how often a new node asks the other nodes; reportEvery is how often it logs which nodes it waits for.
const (
	enterEvery  = 200 * time.Millisecond
	reportEvery = 5 * time.Second
)

// hello is how a node describes itself to a new node.
type hello struct {
	Node    string `json:"node"`
	Stage   string `json:"stage"` // new, founding or member
	Cluster string `json:"cluster,omitempty"`
	List    string `json:"list"`              // list of members that it was started with
	Members string `json:"members,omitempty"` // of its cluster
	Join    bool   `json:"join,omitempty"`
	Entries uint64 `json:"entries"` // that its store has applied
	Content string `json:"content"` // data in its store that users would miss, such as jobs, for people; empty: none
	Version string `json:"version"`
}

func (s stage) String() string { return [...]string{"new", "founding", "member"}[s] }

// ownHello is the hello of this node.
func (n *Node) ownHello() (hello, error) {
	h := hello{Node: n.o.ID, List: listText(n.o.Members), Join: n.o.Join, Version: n.o.Version}
	h.Stage, h.Cluster = n.currentStage().String(), n.clusterID()
	if n.isRunning() {
		h.Members = listText(n.Members())
	}
	s := n.store.Load()
	h.Entries = s.Position().Number
	if h.Stage == isMember.String() {
		return h, nil // its store is the cluster's
	}
	var err error
	h.Content, err = engine.Content(s, n.o.Content)
	return h, err
}

// currentStage returns the stage of this node. A node that its leader has contacted is a member.
func (n *Node) currentStage() stage {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stage == founding && n.raft != nil && n.raft.LastIndex() > 0 {
		n.stage = isMember
	}
	return n.stage
}

// mayBeFounded reports that no leader has contacted this node yet, so another cluster may still be founded with it.
func (n *Node) mayBeFounded() bool { return n.currentStage() != isMember }

// isRunning reports that raft has started.
func (n *Node) isRunning() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.raft != nil
}

// enter makes a new node a member: of a new cluster that it founds with the other nodes, or of an existing one.
func (n *Node) enter(ctx context.Context) error {
	if of := n.store.Load().Cluster(); of != "" {
		return n.explain(fmt.Errorf("the store in %s is part of cluster %s, but the log that belongs to it is missing",
			n.o.Dir, of))
	}
	n.log.Info("waiting for the other nodes", "members", listText(n.o.Members))
	reported := n.now()
	for {
		waits, err := n.tryEnter(ctx)
		if err != nil {
			return err
		}
		if waits == "" {
			break
		}
		if now := n.now(); now.Sub(reported) > reportEvery {
			reported = now
			n.log.Info("still waiting to become a member", "for", waits)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(enterEvery):
		}
	}
	return n.start()
}

// tryEnter asks the other nodes once. It returns what this node waits for; empty: it is a member now.
func (n *Node) tryEnter(ctx context.Context) (waits string, err error) {
	if n.currentStage() == founding {
		return "", nil // a founder has asked this node in the meantime
	}
	own, err := n.ownHello()
	if err != nil {
		return "", err
	}
	hellos, silent, err := n.askAll(ctx)
	if err != nil {
		return "", err
	}
	for _, h := range hellos {
		if h.Stage == isMember.String() {
			return n.tryJoin(ctx, &own, &h)
		}
		if h.List != own.List {
			return "", fmt.Errorf("%w: node %s was started with %s, this one with %s", errListsDiffer, h.Node, h.List,
				own.List)
		}
		if err := n.checkVersion(h.Node, h.Version); err != nil {
			return "", err
		}
	}
	switch {
	case len(n.o.Members)%2 == 0 && !n.o.Join:
		return "",
			fmt.Errorf("%w, and --cluster lists %d: list an odd number, or start this node with --join if the cluster"+
				" exists", errEvenVoters, len(n.o.Members))
	case len(silent) > 0:
		return "no answer of " + silent[0], nil
	case n.o.Join:
		return "none of the nodes is a member of a cluster", nil
	}
	founder, err := chooseFounder(n.o.Members, append(hellos, own))
	if err != nil {
		return "", err
	}
	if founder != n.o.ID {
		return "founding by " + founder, nil
	}
	return "", n.found(ctx)
}

// askAll asks all other members for their hello, in parallel. It fails if a member refuses the version of this node's
// program.
func (n *Node) askAll(ctx context.Context) (hellos []hello, silent []string, err error) {
	type result struct {
		of Member
		h  *hello
		e  error
	}
	results := make(chan result, len(n.o.Members))
	asked := 0
	for _, m := range n.o.Members {
		if m.ID == n.o.ID {
			continue
		}
		asked++
		go func() { // ends within callTimeout
			r, err := n.call(ctx, m, &request{Op: opHello}, time.Second)
			if err != nil {
				results <- result{of: m, e: err}
				return
			}
			results <- result{of: m, h: r.Hello}
		}()
	}
	for range asked {
		r := <-results
		var refused *refusedError
		switch {
		case r.h != nil:
			hellos = append(hellos, *r.h)
		case errors.As(r.e, &refused) && refused.tooOld:
			err = r.e
		default:
			silent = append(silent, fmt.Sprintf("%s (%v)", r.of, r.e))
		}
	}
	return hellos, silent, err
}

// chooseFounder returns the member that founds a cluster of new nodes. All nodes choose the same member.
func chooseFounder(members []Member, hellos []hello) (string, error) {
	var first, used string
	var full *hello // its store has content
	for _, m := range members {
		for i := range hellos {
			h := &hellos[i]
			if h.Node != m.ID {
				continue
			}
			if first == "" || m.ID < first {
				first = m.ID
			}
			if h.Content != "" && full != nil {
				return "",
					fmt.Errorf("node %s has %s of its own and node %s has %s: start all nodes but one with empty folders",
						full.Node, full.Content, h.Node, h.Content)
			}
			if h.Content != "" {
				full = h
			}
			if h.Entries > 0 && (used == "" || m.ID < used) {
				used = m.ID
			}
		}
	}
	switch {
	case full != nil:
		return full.Node, nil
	case used != "":
		return used, nil
	}
	return first, nil
}

// found makes this node the first member of a new cluster, once all other nodes have promised to follow. The cluster
// begins with the content of its store.
func (n *Node) found(ctx context.Context) error {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	cluster := hex.EncodeToString(id)
	for _, m := range n.o.Members {
		if m.ID == n.o.ID {
			continue
		}
		if _, err := n.call(ctx, m, &request{Op: opFound, Cluster: cluster, List: listText(n.o.Members)},
			callTimeout); err != nil {
			return fmt.Errorf("found a cluster: %w", err)
		}
	}
	// From here on, a crash must not make the store unusable, since it may be the only copy. So node.json records that
	// founding has begun.
	begun := identity{Node: n.o.ID, Cluster: cluster, List: listText(n.o.Members), Begun: true}
	if err := n.writeIdentity(begun, isNew); err != nil {
		return fmt.Errorf("found a cluster: %w", err)
	}
	return n.finishFounding(cluster)
}

// finishFounding does the remaining steps of founding once node.json says that it has begun. It can be repeated.
func (n *Node) finishFounding(cluster string) error {
	for step, do := range []func() error{
		func() error { return n.store.Load().Join(cluster, 1) },
		n.writeFirst,
		func() error { return n.setIdentity(cluster, isMember) },
	} {
		err := do()
		if err == nil && n.o.interrupt != nil {
			err = n.o.interrupt(step)
		}
		if err != nil {
			return fmt.Errorf("found a cluster: %w", err)
		}
	}
	n.log.Info("cluster founded", "cluster", cluster, "members", listText(n.o.Members), "entries",
		n.store.Load().Position().Number)
	return nil
}

// resumeFounding continues founding after a crash. The other nodes have promised to follow this node, and wait for it,
// because no other cluster can be founded without it. If this node's store has not joined yet, nothing has happened,
// and this node is new.
func (n *Node) resumeFounding() (known bool, err error) {
	cluster := n.identity.Cluster
	if of := n.store.Load().Cluster(); of == cluster {
		return true, n.finishFounding(cluster)
	}
	n.identity, n.stage = identity{}, isNew
	return false, errors.Join(os.Remove(n.dir(nodeFile)), syncDir(n.dir(".")))
}

// writeFirst writes the initial state of raft: a snapshot at index 1 with all members, and its term.
func (n *Node) writeFirst() error {
	var c raft.Configuration
	for _, m := range n.o.Members {
		c.Servers = append(c.Servers,
			raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(m.ID), Address: raft.ServerAddress(m.Address)})
	}
	sink, err := n.snaps.Create(1, 1, 1, c, 1, nil)
	if err != nil {
		return err
	}
	err = (&flushed{store: n.store.Load(), at: n.store.Load().Position()}).Persist(sink)
	if err = errors.Join(err, sink.Close()); err != nil {
		return err
	}
	l, err := store.OpenLog(store.Options{Dir: n.dir(logDir)})
	if err != nil {
		return err
	}
	s := logStore{log: l}
	return errors.Join(s.SetUint64([]byte("CurrentTerm"), 1), l.Close())
}

// checkVersion refuses to found a cluster with a node of another version: the founder and the copy that the other nodes
// get are chosen before the nodes know which formats all programs can read.
func (n *Node) checkVersion(id, version string) error {
	if version == n.o.Version {
		return nil
	}
	return fmt.Errorf("%w: node %s runs version %s, node %s version %s: found the cluster with one version, and upgrade it then",
		errVersionsDiffer, id, cmp.Or(version, "unknown"), n.o.ID, cmp.Or(n.o.Version, "unknown"))
}

// promise promises a founder to follow it. This node must be new, or have made that promise to a founder that did not
// come back.
func (n *Node) promise(r *request, g *greeting) error {
	if n.o.Join {
		return errors.New("it was started to join a cluster that exists")
	}
	if err := n.checkVersion(g.From, g.Version); err != nil {
		return err
	}
	if r.List != listText(n.o.Members) {
		return fmt.Errorf("%w: it was started with %s", errListsDiffer, listText(n.o.Members))
	}
	if !n.mayBeFounded() {
		return errors.New("it is a member of a cluster already")
	}
	switch content, err := engine.Content(n.store.Load(), n.o.Content); {
	case err != nil:
		return err
	case content != "":
		return fmt.Errorf("it has %s of its own", content)
	}
	return n.setIdentity(r.Cluster, founding)
}

// tryJoin asks the leader of an existing cluster to admit this node.
func (n *Node) tryJoin(ctx context.Context, own, of *hello) (waits string, err error) {
	if own.Content != "" {
		return "",
			fmt.Errorf("this node has %s of its own, and cluster %s exists already (node %s): move %s away to join with an empty folder",
				own.Content, of.Cluster, of.Node, n.o.Dir)
	}
	if !n.o.Join && own.List != of.List && own.List != of.Members {
		return "",
			fmt.Errorf("%w: the members of the cluster are %s, --cluster says %s", errListsDiffer, of.Members, own.List)
	}
	for _, m := range n.o.Members {
		if m.ID == n.o.ID {
			continue
		}
		r, err := n.call(ctx, m, &request{Op: opAdmit, Member: n.self}, 2*callTimeout)
		var refused *callError
		switch {
		case err == nil:
			n.log.Info("admitted to the cluster; this node gets a copy of the leader's store", "cluster", r.Cluster,
				"leader", m.ID)
			return "", n.setIdentity(r.Cluster, founding)
		case errors.As(err, &refused) && refused.final:
			return "", err
		default:
			waits = err.Error()
		}
	}
	return waits, nil
}

// checkNeighbors fails the node if a listed node belongs to another cluster. It does not wait for nodes that do not
// answer.
func (n *Node) checkNeighbors(ctx context.Context) {
	hellos, _, err := n.askAll(ctx)
	if err != nil {
		n.fail(err)
	}
	for _, h := range hellos {
		if h.Stage == isMember.String() && h.Cluster != n.clusterID() {
			n.fail(fmt.Errorf("folder %s is that of a member of cluster %s, but node %s belongs to cluster %s", n.o.Dir,
				n.clusterID(),
				h.Node, h.Cluster))
		}
	}
}
