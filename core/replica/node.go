package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"broker/core/clock"
	"broker/core/engine"
	"broker/core/internal/record"
	"broker/core/internal/store"
)

// Folders and files beside the store.
const (
	raftDir      = "raft"
	nodeFile     = "node.json"
	logDir       = "log"
	snapshotsDir = "snapshots"
	incomingDir  = "incoming" // of a copy that an older program was installing
	outgoingDir  = "outgoing"
)

// Node is a member of a cluster.
type Node struct {
	o      Options
	self   Member
	log    *logger
	stream *stream
	lock   io.Closer

	mu       sync.Mutex // guards the fields below
	identity identity
	stage    stage
	peers    map[string]*peerStatus // the other members, by id

	store   atomic.Pointer[store.Store]
	standby standby
	lease   lease
	time    *clock.Slewed // of the cluster
	hangs   atomic.Bool   // the disk hangs
	yielded atomic.Uint64 // term whose leader has given up its lease
	logs    *logStore
	snaps   *snapshots
	retain  retention
	fsm     *fsm
	trans   *transport
	raft    *raft.Raft // nil until start; set while mu is held
	notify  chan bool
	// journals that have failed; capacity 1, as more failures carry no more information
	ended        chan *journal
	hangsChanged chan struct{}             // capacity 1
	left         chan string               // ids of leaders whose connection to this node has ended; capacity 1
	anchored     atomic.Pointer[raft.Raft] // same as raft, for anchor
	unflushed    atomic.Uint64             // approximate number of entries since the store was last flushed

	serving   atomic.Bool  // this node leads, and serves clients
	diskLow   atomic.Bool  // less than MinFreeDisk is free
	writeTime atomic.Int64 // see Status, in nanoseconds
	diskSlow  atomic.Bool  // see Status
	slowTurn  turn         // of diskSlow
	slowness  slowness
	leads     chan *Leadership
	elections atomic.Uint64

	copies, repeatedCopies atomic.Uint64 // sent to other members

	journal atomic.Pointer[journal] // of the last Leadership

	failed    chan error  // capacity 1
	closing   atomic.Bool // Close was called
	closed    chan struct{}
	closeOnce sync.Once
	running   sync.WaitGroup
}

// identity is node.json.
type identity struct {
	Node    string `json:"node"`
	Cluster string `json:"cluster"`
	List    string `json:"list"` // list of members that the node was last started with

	Begun bool `json:"begun,omitempty"` // this node has begun to found the cluster and is not finished
}

// stage is how far a node has come in joining a cluster.
type stage int

const (
	isNew    stage = iota // it belongs to no cluster yet
	founding              // it has promised to follow a founder, which has not contacted it since
	isMember
)

// Open makes this process a member of its cluster. It waits for the other members until ctx is done.
func Open(ctx context.Context, o Options) (*Node, error) {
	o = o.withDefaults()
	self, listed := find(o.Members, o.ID)
	if !listed {
		return nil, fmt.Errorf("node %s is not in its own list of members %s", o.ID, listText(o.Members))
	}
	n := &Node{
		o: o, self: self, log: newLogger(o.Log), peers: make(map[string]*peerStatus), notify: make(chan bool, 16),
		ended: make(chan *journal, 1), left: make(chan string, 1), hangsChanged: make(chan struct{}, 1),
		leads: make(chan *Leadership, 1), failed: make(chan error, 1), closed: make(chan struct{}),
	}
	n.stream = newStream(n)
	n.snaps = &snapshots{n: n, dir: n.dir(snapshotsDir)}
	n.fsm = &fsm{n: n}
	n.lease.clock, n.time = o.Clock, clock.NewShared(o.Clock)
	if err := n.open(ctx); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// dir is a path in the folder of the node.
func (n *Node) dir(name string) string { return filepath.Join(n.o.Dir, raftDir, name) }

func (n *Node) now() time.Time { return n.o.Clock.Now().Time() }

// sleep waits for d, or until the node is closed.
func (n *Node) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-n.closed:
	}
}

func (n *Node) open(ctx context.Context) (err error) {
	if err := os.MkdirAll(n.dir(snapshotsDir), 0o700); err != nil {
		return err
	}
	if n.lock, err = store.LockFolder(n.dir(".")); err != nil {
		return err
	}
	if err := os.RemoveAll(n.dir(outgoingDir)); err != nil {
		return err
	}
	if err := os.MkdirAll(n.dir(outgoingDir), 0o700); err != nil {
		return err
	}
	known, err := n.readIdentity()
	if err != nil {
		return err
	}
	if !known || n.identity.Begun { // founding has begun, or the folder is new
		if err := errors.Join(os.RemoveAll(n.dir(logDir)), os.RemoveAll(n.dir(snapshotsDir)),
			os.RemoveAll(n.dir(installMark)),
			os.MkdirAll(n.dir(snapshotsDir), 0o700)); err != nil {
			return err
		}
	}
	if err := n.snaps.sweep(); err != nil {
		return err
	}
	if err := n.resumeInstall(); err != nil {
		return err
	}
	if err := n.openStore(); err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	if n.identity.Begun {
		if known, err = n.resumeFounding(); err != nil {
			return err
		}
	}
	if known {
		if err := n.checkStore(); err != nil {
			return err
		}
	}
	n.running.Go(n.serve) // ends when the listener is closed
	if !known {
		return n.enter(ctx)
	}
	n.checkNeighbors(ctx)
	select {
	case err := <-n.failed:
		return err
	default:
	}
	return n.start()
}

// readIdentity reads node.json, if it is there.
func (n *Node) readIdentity() (known bool, err error) {
	text, err := os.ReadFile(n.dir(nodeFile))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &n.identity)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", n.dir(nodeFile), err)
	}
	if n.identity.Node != n.o.ID {
		return false,
			fmt.Errorf("folder %s belongs to node %s of the cluster, not to %s", n.o.Dir, n.identity.Node, n.o.ID)
	}
	n.stage = founding
	return true, nil
}

// setIdentity makes this node a member of a cluster, durably.
func (n *Node) setIdentity(cluster string, to stage) error {
	return n.writeIdentity(identity{Node: n.o.ID, Cluster: cluster, List: listText(n.o.Members)}, to)
}

func (n *Node) writeIdentity(id identity, to stage) error {
	text, err := json.Marshal(id)
	if err != nil {
		return err
	}
	if err := writeFile(n.dir(nodeFile), append(text, '\n')); err != nil {
		return err
	}
	n.mu.Lock()
	n.identity, n.stage = id, to
	n.mu.Unlock()
	return nil
}

// clusterID is the id of the cluster, empty while the node belongs to none.
func (n *Node) clusterID() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.identity.Cluster
}

// checkStore refuses a store other than the one this node had as a member. If the store were older than its log says,
// the node would treat entries as applied that are not.
func (n *Node) checkStore() error {
	s := n.store.Load()
	at := s.Position()
	if of := s.Cluster(); of != n.identity.Cluster {
		all, err := n.snaps.all()
		content, failed := engine.Content(s, n.o.Content)
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		if of == "" && len(all) == 0 && content == "" {
			return nil // it has never received data
		}
		return n.explain(fmt.Errorf("the store in %s is of cluster %q, the node of %q", n.o.Dir, of,
			n.identity.Cluster))
	}
	all, err := n.snaps.all()
	if err != nil || len(all) == 0 {
		return err
	}
	if want := all[0].Position; at.Index < want.Index || at.Index == want.Index && at.Chain != want.Chain {
		return n.explain(fmt.Errorf("the store in %s is at entry %d, index %d, and was at entry %d, index %d when its log was cut: %w",
			n.o.Dir, at.Number, at.Index, want.Number, want.Index, store.ErrDiverged))
	}
	return nil
}

// explain adds to the error what to do about a store that cannot be used.
func (n *Node) explain(err error) error {
	if errors.Is(err, record.ErrNewerFormat) {
		return fmt.Errorf("%w; upgrade the program of this node, its store is good", err)
	}
	return fmt.Errorf("%w; to refill this node from the others, move %s away and start the node with an empty folder",
		err, n.o.Dir)
}

// anchor returns the last entry of the newest snapshot while this node does not lead.
func (n *Node) anchor() (index, term uint64, ok bool) {
	r := n.anchored.Load() // raft calls this, so it must not take a lock
	if r == nil || r.State() == raft.Leader {
		return 0, 0, false
	}
	all, err := n.snaps.List()
	if err != nil || len(all) == 0 {
		return 0, 0, false
	}
	return all[0].Index, all[0].Term, true
}

// start starts raft on the log of this node.
func (n *Node) start() error {
	l, err := store.OpenLog(store.Options{
		Dir: n.dir(logDir), Warn: func(text string) { n.log.Warn("log warning", "detail", text) },
	})
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	n.logs = &logStore{
		log: l, now: func() time.Duration { return n.lease.now().monotonic }, beforeWrite: n.o.beforeWrite,
		writeTakes: n.o.writeTakes,
		anchor:     n.anchor,
	}
	n.logs.removable = n.removable
	n.trans = &transport{
		NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream: n.stream, MaxPool: 3, Timeout: callTimeout, Logger: n.log.forRaft(), MsgpackUseNewTimeFormat: true,
		}),
		isWanted: n.isReplicatingTo, now: n.lease.now, onHeartbeat: n.renewLease, done: n.stream.done.Done(),
		hasRoom: n.hasRoom, onCopy: n.copyBegins, onEntries: n.endCopies,
	}
	r, err := raft.NewRaft(n.raftConfig(), n.fsm, n.logs, n.logs, n.snaps, n.trans)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	n.anchored.Store(r)
	n.mu.Lock()
	n.raft = r
	n.mu.Unlock()
	if err := n.checkList(); err != nil {
		return err
	}
	observed := make(chan raft.Observation, 16)
	r.RegisterObserver(raft.NewObserver(observed, false, func(o *raft.Observation) bool {
		_, leader := o.Data.(raft.LeaderObservation)
		return leader
	}))
	n.startStandby()
	n.running.Go(func() { n.observe(observed) }) // these end when closed is closed
	n.running.Go(n.watchLead)
	n.running.Go(n.watchDisk)
	n.running.Go(n.watchMembers)
	n.running.Go(n.watchLeader)
	n.running.Go(n.watchHang)
	return nil
}

// callTimeout limits the calls of raft and of this package.
const callTimeout = 5 * time.Second

func (n *Node) raftConfig() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(n.o.ID)
	c.Logger = n.log.forRaft()
	// A follower notices a silent leader after one to three times the heartbeat timeout.
	c.HeartbeatTimeout, c.ElectionTimeout = n.o.ElectionTimeout*3/5, n.o.ElectionTimeout
	c.LeaderLeaseTimeout = n.o.ElectionTimeout / 2
	c.NoSnapshotRestoreOnStart = true
	c.NotifyCh = n.notify
	c.SnapshotInterval, c.SnapshotThreshold = 24*time.Hour, 1<<62 // the log is cut by its size: cutLog
	c.TrailingLogs = 1 << 62
	c.NoLegacyTelemetry = true
	return c
}

// checkList refuses another address of this node than the one under which the cluster knows it. The other members are
// those of this node's log: the list in the settings serves to found a cluster or to find it, and may be an older one.
func (n *Node) checkList() error {
	members := n.Members()
	if m, there := find(members, n.o.ID); there && m.Address != n.self.Address {
		return fmt.Errorf("%w: the cluster knows this node as %s, --cluster says %s; start it with %s in --cluster",
			errListsDiffer, m, n.self, m)
	}
	list := listText(n.o.Members)
	if len(members) > 0 && list != listText(members) {
		n.log.Info("the members of the cluster are not those of --cluster; the cluster's count",
			"members", listText(members), "list", list)
	}
	if list != n.identity.List {
		return n.setIdentity(n.identity.Cluster, n.stage)
	}
	return nil
}

// observe reports changes of the leader.
func (n *Node) observe(observed <-chan raft.Observation) {
	for {
		select {
		case o := <-observed:
			if l, ok := o.Data.(raft.LeaderObservation); ok {
				switch {
				case l.LeaderID != "":
					n.log.Info("leader", "node", string(l.LeaderID), "address", string(l.LeaderAddr), "term",
						n.raft.CurrentTerm())
				case !n.closing.Load():
					n.log.Warn("this node knows no leader of the cluster")
				}
			}
			n.o.LeaderChanged()
		case <-n.closed:
			return
		}
	}
}

// fail makes the node stop; only the first reason counts. It does not block.
func (n *Node) fail(err error) {
	select {
	case n.failed <- err:
	default:
	}
}

// Failed receives the reason why this node cannot continue. The caller should then close the node.
func (n *Node) Failed() <-chan error { return n.failed }

// Close transfers leadership to another member, if this node leads, and stops the node. Engines on its store must have
// stopped.
func (n *Node) Close() error {
	var errs []error
	n.closeOnce.Do(func() {
		n.closing.Store(true)
		n.closeStandby()
		if n.raft != nil {
			if n.IsLeader() {
				if err := n.Transfer(context.Background(), ""); err != nil {
					n.log.Warn("leadership could not be transferred", "error", err.Error())
				}
			}
			ended := n.raft.Shutdown()
			n.stream.closeCalls()
			errs = append(errs, ended.Error())
		}
		n.stream.closeCalls()
		close(n.closed)
		_ = n.o.Listener.Close() // nothing depends on it
		if n.trans != nil {
			_ = n.trans.Close() // closes the stream, which cannot fail
		}
		n.running.Wait()
		if s := n.store.Load(); s != nil {
			errs = append(errs, s.Close())
		}
		if n.logs != nil {
			errs = append(errs, n.logs.log.Close())
		}
		if n.lock != nil {
			errs = append(errs, n.lock.Close())
		}
	})
	return errors.Join(errs...)
}

// Leadership is a period during which this node leads.
type Leadership struct {
	n       *Node
	journal *journal
	standby *engine.Standby // nil: the engine reads the store
	lost    chan struct{}
	Term    uint64

	Before   uint64 // number of the last entry of earlier terms
	LastTerm uint64 // the term of that entry
}

// Attach sets the options of an engine that serves as the leader's.
func (l *Leadership) Attach(o *engine.Options) {
	r := &engine.Replicated{
		Store: l.n.store.Load(), Journal: l.journal, Standby: l.standby, CommitLeases: l.n.o.CommitLeases,
		Recent: l.n.recent,
		Time:   l.n.time,
		Term:   l.Term,
		Format: func() int { return int(l.journal.format.Load()) },
	}
	if !l.n.o.CommitLeases {
		r.Holds = l.holds
	}
	o.Replicated = r
}

// Serving sets whether this node serves clients. Until it does, clients of other members wait.
func (l *Leadership) Serving(yes bool) { l.n.serving.Store(yes) }

// Lost is closed when another node may lead. The engine must stop at once.
func (l *Leadership) Lost() <-chan struct{} { return l.lost }

func (l *Leadership) end() {
	l.journal.end()
	l.n.serving.Store(false)
	close(l.lost)
	l.n.giveBackStandby(l.standby)
}

// Leads receives a Leadership whenever this node has won an election and its store has all entries committed before.
func (n *Node) Leads() <-chan *Leadership { return n.leads }
