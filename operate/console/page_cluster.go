package console

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"broker/access"
	"broker/operate/service"
)

type clusterData struct {
	service.ClusterOverview
	Alone   bool
	AsOf    time.Time
	Reserve string // the effect of losing another node
	Serves  bool   // pages other than this one are shown
	AtRisk  bool

	Open                  bool // the form for the nodes is open, because its input was invalid
	Problem, Node, Target string
}

// spare is the number of voters that may still fail before the cluster accepts no changes; negative: it accepts none
// now. A node that does not answer counts as a voter, because it may be one.
func spare(nodes []service.ClusterNode) int {
	voters, up := 0, 0
	for _, n := range nodes {
		if n.Role == "learner" {
			continue
		}
		voters++
		if n.Answers() {
			up++
		}
	}
	return up - (voters/2 + 1)
}

// healthFor is how long the pages show an answer of the nodes, and healthAfter how old an answer may be when a page
// asks for the next one.
const (
	healthFor   = 10 * time.Second
	healthAfter = 2 * time.Second
)

// clusterHealth keeps what the nodes have answered last: a node that does not answer would keep every page waiting.
type clusterHealth struct {
	ask func(context.Context) service.ClusterOverview // nil: no cluster
	now func() time.Time

	mu     sync.Mutex // guards the rest
	last   service.ClusterOverview
	at     time.Time     // zero: not asked yet
	asking chan struct{} // closed when the answer is there; nil: nobody asks
}

// fresh asks the nodes, together with others that ask now.
func (h *clusterHealth) fresh(ctx context.Context) (service.ClusterOverview, time.Time) {
	select {
	case <-h.start():
	case <-ctx.Done():
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last, h.at
}

// recent returns the last answer, and asks for the next one if it is old. It waits only for the first answer, and after
// a pause.
func (h *clusterHealth) recent(ctx context.Context) service.ClusterOverview {
	if h.ask == nil {
		return service.ClusterOverview{}
	}
	h.mu.Lock()
	last, age := h.last, h.now().Sub(h.at)
	h.mu.Unlock()
	switch {
	case age > healthFor || age < 0:
		last, _ = h.fresh(ctx)
	case age > healthAfter:
		h.start()
	}
	return last
}

// start asks the nodes unless that is in progress.
func (h *clusterHealth) start() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asking != nil {
		return h.asking
	}
	done := make(chan struct{})
	h.asking = done
	go func() { // ends when the nodes have answered or time is up
		answer := h.ask(context.Background())
		h.mu.Lock()
		defer h.mu.Unlock()
		h.last, h.at, h.asking = answer, h.now(), nil
		close(done)
	}()
	return done
}

// clusterBadge says how many nodes answer, and how many more may fail.
func clusterBadge(nodes []service.ClusterNode) badge {
	up := 0
	for _, n := range nodes {
		if n.Answers() {
			up++
		}
	}
	text := fmt.Sprintf("%d of %s", up, plural(len(nodes), "node"))
	switch n := spare(nodes); {
	case n < 0:
		return badge{"failed", text + "; too few", "cluster"}
	case n == 0:
		return badge{"draining", text + "; one more failure stops it", "cluster"}
	case up < len(nodes):
		return badge{"draining", text + "; " + plural(n, "node") + " more may fail", "cluster"}
	}
	return badge{"ok", text, "cluster"}
}

// weighLoss describes the effect of losing another node.
func (d *clusterData) weighLoss() {
	n := spare(d.Nodes)
	d.AtRisk = n <= 0
	switch {
	case len(d.Nodes) == 0:
	case n < 0:
		d.Reserve = "Too few nodes are reachable: nothing is accepted until more than half of the voters are."
	case n == 0:
		d.Reserve = "If one more node fails, nothing is accepted any more."
	default:
		d.Reserve = plural(n, "node") + " may fail, and clients are still served."
	}
}

func clusterPage(r *request) (*view, error) {
	if err := r.caller.Require(access.Read); err != nil {
		return nil, err
	}
	d, cluster := &clusterData{}, r.console.options.Cluster
	if d.Alone = cluster == nil; !d.Alone {
		d.ClusterOverview, d.AsOf = r.console.health.fresh(r.Context())
		d.weighLoss()
	}
	d.Serves = r.service != nil
	return &view{page: "cluster", title: "Cluster", nav: "cluster", data: d}, nil
}

// clusterNotes are the notes after a change.
var clusterNotes = map[service.ClusterAction]string{
	service.ClusterAdd:      "The node may join. It gets a vote once it has caught up.",
	service.ClusterRemove:   "The node is removed.",
	service.ClusterTransfer: "Another node leads.",
}

// clusterQuestion returns the question before clients are disconnected or a node's copy is given up; ok is false for
// other changes.
func clusterQuestion(change service.ClusterChange) (q question, ok bool) {
	q = question{Path: "cluster", Back: "cluster"}
	switch change.Action {
	case service.ClusterRemove:
		q.Title, q.Button = "Remove the node "+change.Node+"?", "Remove the node"
		q.Consequence = "The cluster goes on without it, and fewer nodes may fail. To come back, the node must be added again, and copies all data anew."
	case service.ClusterTransfer:
		q.Title, q.Button = "Let "+change.Node+" lead?", "Let it lead"
		q.Consequence = "The clients of the node that leads, and those of Qless and Conveyor, are disconnected and connect again. " +
			"Jobs that the Gearman workers among them hold go back to their queues."
	case service.ClusterAdd:
	}
	return q, q.Title != ""
}

// changeCluster adds or removes a node, or transfers the leadership.
func changeCluster(r *request) (*view, error) {
	change := service.ClusterChange{
		Action: service.ClusterAction(r.PostFormValue("do")), Node: strings.TrimSpace(r.PostFormValue("node")),
		Address: strings.TrimSpace(r.PostFormValue("address")),
	}
	if q, ok := clusterQuestion(change); ok {
		if v := r.ask(q); v != nil {
			return v, nil
		}
	}
	err := r.service.ChangeCluster(r.Context(), r.caller, change)
	if err == nil {
		return r.back("cluster", clusterNotes[change.Action])
	}
	if !service.IsCode(err, service.CodeClusterRefused) && !service.IsCode(err, service.CodeNodeNotFound) &&
		!service.IsCode(err, service.CodeInvalid) {
		return nil, err
	}
	return again(r, err, clusterPage, func(d *clusterData, reason string) {
		d.Open, d.Problem, d.Node, d.Target = true, reason, change.Node, change.Address
	})
}
