package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"broker/core"
)

// Status is the state of a node, as it reports it.
type Status struct {
	Node      string `json:"node"`
	Role      string `json:"role"` // leader, candidate, follower, or learner: a follower without a vote
	Leader    string `json:"leader"`
	Serving   bool   `json:"serving"` // it leads, and serves clients
	Term      uint64 `json:"term"`
	Applied   uint64 `json:"applied"`       // index of the last entry applied to its store
	Last      uint64 `json:"last"`          // index of its last entry
	Committed uint64 `json:"committed"`     // index of the last entry that it knows to be committed
	Lag       uint64 `json:"lag,omitempty"` // only in a node's own report: entries that it has not applied
	Reachable bool   `json:"-"`             // as far as it knows, clients are served through this node
	LogBytes  uint64 `json:"log_bytes"`
	DiskLow   bool   `json:"disk_low,omitempty"` // its disk is nearly full
	Unlinked  bool   `json:"unlinked,omitempty"` // it follows, and its clients have no link to the leader

	FreeBytes uint64 `json:"free_bytes,omitempty"` // of its disk; zero: unknown

	// WriteTime is the average time of a write of its log in the last second, with its sync; zero: it wrote nothing.
	WriteTime time.Duration `json:"write_time,omitempty"`
	DiskSlow  bool          `json:"disk_slow,omitempty"` // it was slowWrite or more, slowChecks times in a row

	Elections uint64    `json:"elections"` // elections won since its start
	Members   []Member  `json:"members"`
	Version   string    `json:"version"`
	Reads     int       `json:"reads,omitempty"`  // newest format it reads
	Format    int       `json:"format,omitempty"` // format of the last entry of its store
	Warm      bool      `json:"warm"`             // the index of all jobs is in memory; if it does not lead, it could at once
	IndexJobs int       `json:"index_jobs"`       // of a follower: jobs in its index
	IndexLag  uint64    `json:"index_lag"`        // of a follower: entries in its store that its index does not have yet
	Now       time.Time `json:"now"`              // by its wall clock

	Copies         map[string]int `json:"copies,omitempty"` // of a leader, by member; see followsFor
	CopiesSent     uint64         `json:"copies_sent"`      // since its start
	CopiesRepeated uint64         `json:"copies_repeated"`  // of these, the second and later ones in Copies

	Time      core.Instant  `json:"time,omitempty"`       // of the cluster; zero: it does not know it
	ClockSkew time.Duration `json:"clock_skew,omitempty"` // by how much its wall clock is ahead of Time
}

// NodeInfo is a line of the list of nodes.
type NodeInfo struct {
	ID          string  `json:"id"`
	Role        string  `json:"role"` // as in Status, or unreachable
	Address     string  `json:"address"`
	Applied     uint64  `json:"applied"`
	Lag         uint64  `json:"lag"`            // entries that it has not applied yet
	LastContact float64 `json:"last_contact_s"` // since it last answered the reporting node
	Version     string  `json:"version"`
	Format      int     `json:"format"` // newest format that its program reads; zero: unknown
	Warm        bool    `json:"warm"`
	IndexLag    uint64  `json:"index_lag"`
	ClockSkew   float64 `json:"clock_skew_s"` // by how much its wall clock is ahead of the cluster's time
	Copies      int     `json:"copies"`       // of the store that the leader has sent to it; see followsFor
	WriteTime   float64 `json:"write_s"`      // as in Status, in seconds
	DiskSlow    bool    `json:"disk_slow"`
	DiskLow     bool    `json:"disk_low"` // as in Status
	Unlinked    bool    `json:"unlinked"` // as in Status
}

// Overview is the cluster as a node sees it.
type Overview struct {
	Leader string     `json:"leader"` // empty: this node knows no leader
	Format int        `json:"format"` // format of entries, as far as this node knows
	Nodes  []NodeInfo `json:"nodes"`
}

// peerStatus is the last known status of another member.
type peerStatus struct {
	status Status
	at     time.Time     // zero: it has never answered
	warned time.Time     // last warning about its clock
	skew   time.Duration // by how much its wall clock is ahead of this node's
	copies int           // sent to it; see followsFor
	noRoom bool          // it was reported that it has no room for a copy

	following time.Duration // when it accepted entries after the last copy, by the monotonic clock; zero: not yet

	failed int // failed calls of watchMembers in a row
}

// silentAfter is how many unanswered calls in a row are reported as a member that does not answer.
const silentAfter = 2

// maxSkew is the largest difference between the clocks of two members without a warning.
const maxSkew = 2 * time.Second

// servers is raft's list of members.
func (n *Node) servers() []raft.Server {
	f := n.raft.GetConfiguration()
	if f.Error() != nil {
		return nil // raft is closed
	}
	return f.Configuration().Servers
}

// voters are the members with a vote, as far as this node knows. The leader knows all of them.
func (n *Node) voters() map[string]bool {
	votes := make(map[string]bool)
	for _, s := range n.servers() {
		votes[string(s.ID)] = s.Suffrage == raft.Voter
	}
	return votes
}

// Members are the members of the cluster, in the order of their ids.
func (n *Node) Members() []Member {
	if !n.isRunning() {
		return nil
	}
	var all []Member
	for _, s := range n.servers() {
		all = append(all, Member{ID: string(s.ID), Address: string(s.Address)})
	}
	slices.SortFunc(all, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Status returns the status of this node; false: raft has not started.
func (n *Node) Status() (Status, bool) {
	if !n.isRunning() {
		return Status{}, false
	}
	s := n.status()
	s.Lag, s.Reachable = n.lag(&s), s.Serving || n.servedBy(s.Leader)
	return s, true
}

// servedBy reports whether a member served clients when it last answered; members are asked once a second.
func (n *Node) servedBy(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.peers[id]
	return k != nil && k.status.Serving && n.now().Sub(k.at) < currentFor
}

// currentFor is how long an answer of another member is considered current.
const currentFor = 5 * time.Second

// lag is how many entries this node has yet to apply. A node that does not get all entries does not know of the later
// ones. So it also considers what other members have committed by their last answers; they are asked once a second.
func (n *Node) lag(own *Status) uint64 {
	end := own.Committed
	n.mu.Lock()
	for _, k := range n.peers {
		end = max(end, k.status.Committed)
	}
	n.mu.Unlock()
	return end - min(end, own.Applied)
}

func (n *Node) status() Status {
	_, leader := n.raft.LeaderWithID()
	s := Status{
		Node: n.o.ID, Leader: string(leader), Serving: n.serving.Load(), Term: n.raft.CurrentTerm(),
		Applied: n.raft.AppliedIndex(),
		Last:    n.raft.LastIndex(), Committed: n.raft.CommitIndex(), LogBytes: n.logs.log.Bytes(),
		DiskLow: n.diskLow.Load(), WriteTime: time.Duration(n.writeTime.Load()), DiskSlow: n.diskSlow.Load(),
		Elections: n.elections.Load(),
		Members:   n.Members(), Version: n.o.Version, Now: n.now(),
		Reads: n.o.newestFormat, Format: n.formatInForce(),
	}
	s.Warm, s.IndexJobs, s.IndexLag = n.warmth()
	if free, err := n.store.Load().FreeBytes(); err == nil {
		s.FreeBytes = free
	}
	s.Copies, s.CopiesSent, s.CopiesRepeated = n.copiesSent(), n.copies.Load(), n.repeatedCopies.Load()
	if n.time.Known() {
		s.Time, s.ClockSkew = n.time.Now(), n.time.Offset()
	}
	switch n.raft.State() {
	case raft.Leader:
		s.Role = "leader"
	case raft.Candidate:
		s.Role = "candidate"
	case raft.Follower, raft.Shutdown:
		s.Role = "follower"
		for _, o := range n.servers() {
			if string(o.ID) == n.o.ID && o.Suffrage != raft.Voter {
				s.Role = "learner"
			}
		}
	}
	s.Unlinked = s.Role != "leader" && !n.o.Linked()
	return s
}

// ask asks a member for its status and remembers the answer.
func (n *Node) ask(ctx context.Context, m Member, within time.Duration) (*Status, error) {
	asked, began := n.now(), n.lease.now()
	r, err := n.call(ctx, m, &request{Op: opStatus}, within)
	if err != nil {
		return nil, err
	}
	if r.Status == nil {
		return nil, fmt.Errorf("node %s: no status", m.ID)
	}
	n.followTime(r.Status, began)
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.peerLocked(m.ID)
	k.status, k.at = *r.Status, n.now()
	k.skew = r.Status.Now.Sub(asked.Add(k.at.Sub(asked) / 2))
	early, late := asked.Sub(r.Status.Now), r.Status.Now.Sub(k.at)
	if max(early, late) > maxSkew && k.at.Sub(k.warned) > time.Minute {
		k.warned = k.at
		n.log.Warn("the clocks of two nodes differ", "node", m.ID, "by_ms", max(early, late).Milliseconds())
	}
	return r.Status, nil
}

// peerLocked returns the peerStatus of a member for an update.
func (n *Node) peerLocked(id string) *peerStatus {
	k := n.peers[id]
	if k == nil {
		k = &peerStatus{}
		n.peers[id] = k
	}
	return k
}

// reportSilence logs once that a member does not answer, and once that it answers again.
func (n *Node) reportSilence(m Member, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.peerLocked(m.ID)
	switch {
	case err == nil && k.failed >= silentAfter:
		n.log.Info("a node answers again", "node", m.ID)
	case err != nil && k.failed == silentAfter-1:
		n.log.Warn("a node does not answer", "node", m.ID, "address", m.Address, "error", err.Error())
	}
	if k.failed++; err == nil {
		k.failed = 0
	}
}

// askOthers asks all other members in parallel. onResult may be nil; it is called with the result for each member.
func (n *Node) askOthers(ctx context.Context, within time.Duration, onResult func(Member, error)) map[string]*Status {
	type result struct {
		id string
		s  *Status
	}
	members := n.Members()
	results := make(chan result, len(members))
	for _, m := range members {
		go func() { // ends after within at the latest
			if m.ID == n.o.ID {
				s := n.status()
				results <- result{m.ID, &s}
				return
			}
			s, err := n.ask(ctx, m, within)
			if onResult != nil {
				onResult(m, err)
			}
			if err != nil {
				s = nil // it shows as unreachable
			}
			results <- result{m.ID, s}
		}()
	}
	all := make(map[string]*Status, len(members))
	for range members {
		if r := <-results; r.s != nil {
			all[r.id] = r.s
		}
	}
	return all
}

// statusWithin limits how long a query of all members takes.
const statusWithin = 500 * time.Millisecond

// Overview asks all members.
func (n *Node) Overview(ctx context.Context) Overview {
	o := Overview{Nodes: []NodeInfo{}, Format: n.formatInForce()}
	if !n.isRunning() {
		for _, m := range n.o.Members {
			role := "unreachable"
			if m.ID == n.o.ID {
				role = "starting"
			}
			o.Nodes = append(o.Nodes, NodeInfo{ID: m.ID, Role: role, Address: m.Address})
		}
		return o
	}
	all := n.askOthers(ctx, statusWithin, nil)
	var end uint64
	for _, s := range all {
		end = max(end, s.Committed, s.Applied)
		if s.Role == "leader" && (o.Leader == "" || s.Term > all[o.Leader].Term) {
			o.Leader = s.Node
		}
	}
	votes := n.voters()
	for _, m := range n.Members() {
		i := NodeInfo{ID: m.ID, Role: "unreachable", Address: m.Address}
		s := all[m.ID]
		if s == nil {
			s = n.lastSeen(m.ID, &i)
		} else {
			i.Role, i.Warm, i.IndexLag, i.ClockSkew = s.Role, s.Warm, s.IndexLag, s.ClockSkew.Seconds()
			i.WriteTime, i.DiskSlow = s.WriteTime.Seconds(), s.DiskSlow
			i.DiskLow, i.Unlinked = s.DiskLow, s.Unlinked
			if s.Role == "leader" && s.Node != o.Leader {
				i.Role = "follower" // it does not know this yet
			}
			if i.Role == "follower" && !votes[m.ID] {
				i.Role = "learner" // it does not know this either
			}
		}
		if s != nil {
			i.Applied, i.Version, i.Format = s.Applied, s.Version, s.Reads
		}
		i.Lag = end - min(end, i.Applied)
		if l := all[o.Leader]; l != nil {
			i.Copies = l.Copies[m.ID]
		}
		o.Nodes = append(o.Nodes, i)
	}
	return o
}

// lastSeen returns the last status of a member before it became unreachable.
func (n *Node) lastSeen(id string, into *NodeInfo) *Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.peers[id]
	if k == nil || k.at.IsZero() {
		return nil
	}
	into.LastContact = n.now().Sub(k.at).Seconds()
	s := k.status
	return &s
}

// LeaderID is the member that leads, as far as this node knows; empty: none.
func (n *Node) LeaderID() string {
	if !n.isRunning() {
		return ""
	}
	_, id := n.raft.LeaderWithID()
	return string(id)
}

// IsLeader reports whether this node leads, as far as it knows.
func (n *Node) IsLeader() bool { return n.isRunning() && n.raft.State() == raft.Leader }

// Ready reports whether a client would be served through this node.
func (n *Node) Ready(ctx context.Context) bool {
	leader := n.LeaderID()
	if leader == "" {
		return false
	}
	if leader == n.o.ID {
		return n.serving.Load()
	}
	m, there := find(n.Members(), leader)
	if !there {
		return false
	}
	s, err := n.ask(ctx, m, statusWithin)
	return err == nil && s.Serving
}

// DialLeader opens a connection to the leader's front-end for a client at the given address.
func (n *Node) DialLeader(ctx context.Context, frontend, client string) (net.Conn, error) {
	leader := n.LeaderID()
	m, there := find(n.Members(), leader)
	if !there || leader == n.o.ID {
		return nil, errNoLeader
	}
	return n.dial(ctx, m, greeting{Kind: kindClient, Frontend: frontend, Client: client})
}

// watchMembers checks the other members, and this node's disk, once a second.
func (n *Node) watchMembers() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // ends with the node
		<-n.closed
		cancel()
	}()
	for {
		n.sleep(n.o.checks.every)
		if ctx.Err() != nil {
			return
		}
		n.checkWrites()
		all := n.askOthers(ctx, time.Second, n.reportSilence)
		n.correctTime(all)
		if n.raft.State() == raft.Leader {
			n.promoteLearners(all)
			n.raiseFormat(all)
			n.transferIfDiskLow(all)
			n.transferIfDiskSlow(all)
			continue
		}
		n.slowness.follow()
		if removed(n.o.ID, n.LeaderID(), n.raft.CurrentTerm(), all) {
			n.fail(ErrRemoved)
			return
		}
	}
}

// Removed asks the other members whether this node was removed from the cluster, perhaps while it was stopped.
func (n *Node) Removed(ctx context.Context) bool {
	all := n.askOthers(ctx, statusWithin, nil)
	return removed(n.o.ID, n.LeaderID(), n.raft.CurrentTerm(), all)
}

// removed reports whether a leader in all no longer lists the node id as a member. If the node follows a leader, only
// that leader's answer in the same term counts. A node that was removed before it started follows no leader, because no
// member calls it; then any leader whose term is not older counts.
func removed(id, leader string, term uint64, all map[string]*Status) bool {
	for _, l := range all {
		if l.Role != "leader" || len(l.Members) == 0 {
			continue
		}
		if current := leader == l.Node && term == l.Term; current || leader == "" && term <= l.Term {
			if _, there := find(l.Members, id); !there {
				return true
			}
		}
	}
	return false
}

// votesWithin is how many entries a node may be behind and still get a vote.
const votesWithin = 256

// promoteLearners gives votes to members that have caught up, if that makes the number of voters odd: an even number of
// voters tolerates no more failures than one voter less.
func (n *Node) promoteLearners(all map[string]*Status) {
	voters := 0
	var able []raft.Server
	for _, s := range n.servers() {
		if s.Suffrage == raft.Voter {
			voters++
		} else if st := all[string(s.ID)]; st != nil && st.Applied+votesWithin > n.raft.CommitIndex() {
			able = append(able, s)
		}
	}
	take := 0
	switch {
	case voters%2 == 0 && len(able) > 0:
		take = 1
	case voters%2 == 1 && len(able) > 1:
		take = 2
	}
	for _, s := range able[:take] {
		if err := n.raft.AddVoter(s.ID, s.Address, 0, callTimeout).Error(); err != nil {
			n.log.Warn("a node got no vote", "node", string(s.ID), "error", err.Error())
			return
		}
		n.log.Info("a node has caught up and votes", "node", string(s.ID))
	}
}

// Add makes a node a member, without a vote at first. Start the node with --join afterwards.
func (n *Node) Add(m Member) error {
	if !n.isRunning() || n.raft.State() != raft.Leader {
		return errNotLeader
	}
	for _, o := range n.Members() {
		if o.ID == m.ID {
			return fmt.Errorf("node %s is a member already", o)
		}
		if o.Address == m.Address {
			return fmt.Errorf("node %s has that address already", o)
		}
	}
	return n.raft.AddNonvoter(raft.ServerID(m.ID), raft.ServerAddress(m.Address), 0, callTimeout).Error()
}

// Remove removes a node from the cluster. It fails if the remaining voters could not continue without it. If it is
// this node, another one becomes the leader and removes it; handsOver is called before that, and its error refuses
// the removal.
func (n *Node) Remove(ctx context.Context, id string, handsOver func() error) error {
	if !n.isRunning() || n.raft.State() != raft.Leader {
		return errNotLeader
	}
	all := n.askOthers(ctx, statusWithin, nil)
	left, alive, member, voter := 0, 0, false, false
	for _, s := range n.servers() {
		if string(s.ID) == id {
			member, voter = true, s.Suffrage == raft.Voter
			continue
		}
		if s.Suffrage == raft.Voter {
			left++
			if all[string(s.ID)] != nil {
				alive++
			}
		}
	}
	switch {
	case !member:
		return ErrNotMember
	case voter && alive <= left/2:
		return fmt.Errorf("without node %s only %d of %d voters are reachable, and no majority", id, alive, left)
	}
	if id == n.o.ID {
		return n.leave(ctx, handsOver)
	}
	return n.raft.RemoveServer(raft.ServerID(id), 0, callTimeout).Error()
}

// leave hands the lead over, and lets the next leader remove this node.
func (n *Node) leave(ctx context.Context, handsOver func() error) error {
	to, err := n.Successor(ctx, "")
	if err == nil {
		err = handsOver()
	}
	if err != nil {
		return err
	}
	// From here on, the request is completed, even if its client's connection ends with the lead.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*callTimeout)
	defer cancel()
	if err := n.Transfer(ctx, to); err != nil {
		return err
	}
	for {
		err := errNoLeader
		if m, there := find(n.Members(), n.LeaderID()); there && m.ID != n.o.ID {
			_, err = n.call(ctx, m, &request{Op: opRemove, Member: n.self}, callTimeout)
		}
		var refused *callError
		removed := errors.As(err, &refused) && refused.text == ErrNotMember.Error() // by an earlier call
		if err == nil || removed {
			return nil
		}
		n.sleep(leaveAgain)
		if ctx.Err() != nil {
			return fmt.Errorf("node %s no longer leads, and is a member still; try again: %w", n.o.ID, err)
		}
	}
}

// leaveAgain is between two requests of a node that wants to be removed.
const leaveAgain = 50 * time.Millisecond
