package sqs

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"sync"
	"time"

	"broker/core"
	"broker/frontends"
)

// At a node of a cluster that follows, the front-end serves the actions on messages. The settings of queues, move
// tasks, attempts to receive and the counts of requests belong to clients of all nodes: the front-end of the leader has
// them, and runs the other actions, for callers that the node has authenticated. A node keeps the settings of the
// queues that it has used, until the leader tells it that they have changed.

// atNode are the actions that every node serves.
var atNode = map[string]bool{
	"SendMessage": true, "SendMessageBatch": true, receiveAction: true, "DeleteMessage": true,
	"DeleteMessageBatch": true, "ChangeMessageVisibility": true, "ChangeMessageVisibilityBatch": true,
}

// Questions of a node that follows.
const (
	askRun      = "run"      // an action
	askQueue    = "queue"    // the settings of a queue
	askFair     = "fair"     // that the groups of a queue take turns
	askAttempt  = "attempt"  // the messages of an attempt
	askRemember = "remember" // that they are kept
	askCount    = "count"    // that requests are counted
)

type question struct {
	Do      string
	Queue   string        `json:",omitempty"`
	Attempt string        `json:",omitempty"`
	Taken   []core.Reply  `json:",omitempty"` // of the attempt: Seq and Lease
	Counts  []ActionCount `json:",omitempty"`
	Run     *forwarded    `json:",omitempty"`
	From    sender        `json:",omitzero"`
}

// sender is the caller of a request.
type sender struct{ Principal, Address, Identity string }

// forwarded is a request.
type forwarded struct {
	Method, Path, Query, Target, ContentType, Accept, Host, Trace string

	Body []byte
}

type answer struct {
	Queue *queue       `json:",omitempty"` // nil: no SQS client has made it
	Found bool         `json:",omitempty"` // the attempt
	Taken []core.Reply `json:",omitempty"`
	Error string       `json:",omitempty"`
	Reply *reply       `json:",omitempty"`
}

// notice is what the leader tells nodes: the settings of a queue have changed.
type notice struct{ Queue string }

// nodes are those that follow and have asked.
type nodes struct {
	mu  sync.Mutex // guards all
	all map[frontends.Node]bool
}

// callerOf is the caller that a node has authenticated.
func (f *Frontend) callerOf(s sender) caller {
	return caller{principal: f.guard.Control().Default(s.Principal), address: s.Address, identity: s.Identity}
}

func (c *caller) sender() sender { return sender{c.name(), c.address, c.identity} }

// Answer implements frontends.Shared.
func (f *Frontend) Answer(from frontends.Node, asked []byte, answers func([]byte)) {
	f.nodes.mu.Lock()
	if f.nodes.all == nil {
		f.nodes.all = make(map[frontends.Node]bool)
	}
	f.nodes.all[from] = true
	f.nodes.mu.Unlock()
	var q question
	if json.Unmarshal(asked, &q) != nil {
		answers(frontends.ToJSON(answer{}))
		return
	}
	now := f.broker.Now()
	var a answer
	switch q.Do {
	case askQueue:
		a.Queue = f.known(q.Queue)
	case askAttempt:
		a.Taken, a.Found = f.attempts.find(q.Queue, q.Attempt, now)
	case askRemember:
		f.attempts.remember(q.Queue, q.Attempt, q.Taken, now)
	case askCount:
		f.meter.add(q.Counts)
	case askRun, askFair: // these may wait
		f.done.Go(func() {
			if q.Do == askFair {
				if err := f.makeFair(f.callerOf(q.From), q.Queue); err != nil {
					a.Error = err.Error()
				}
			} else {
				a.Reply = f.runForwarded(&q)
			}
			answers(frontends.ToJSON(a))
		})
		return
	}
	answers(frontends.ToJSON(a))
}

// runForwarded runs an action for a node.
func (f *Frontend) runForwarded(asked *question) *reply {
	of := asked.Run
	r := &http.Request{
		Method: of.Method, URL: &url.URL{Path: of.Path, RawQuery: of.Query}, Header: make(http.Header),
	}
	r.Header.Set("X-Amz-Target", of.Target)
	r.Header.Set("Content-Type", of.ContentType)
	r.Header.Set("Accept", of.Accept)
	q := &request{front: f, ctx: f.ctx, from: f.callerOf(asked.From), host: of.Host, trace: of.Trace}
	out, err := q.guard(func() (out outcome, err error) {
		if q.wire, err = readRequest(r, of.Body); err != nil {
			return out, err
		}
		return commands[q.wire.action].run(q) // the node knows it
	})
	return q.encode(out, err)
}

// Left implements frontends.Shared.
func (f *Frontend) Left(node frontends.Node) {
	f.nodes.mu.Lock()
	defer f.nodes.mu.Unlock()
	delete(f.nodes.all, node)
}

// Heard implements frontends.Shared.
func (f *Frontend) Heard(say []byte) {
	var n notice
	if json.Unmarshal(say, &n) != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drops++
	delete(f.queues, n.Queue)
}

// Register implements frontends.Shared: changes of settings may have been lost with the leader before, or not told.
func (f *Frontend) Register(func([]byte, func([]byte))) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drops++
	clear(f.queues)
}

// tellChanged tells the nodes that the settings of a queue have changed.
func (f *Frontend) tellChanged(name string) {
	f.nodes.mu.Lock()
	defer f.nodes.mu.Unlock()
	for n := range f.nodes.all {
		n.Tell(frontends.ToJSON(notice{name}))
	}
}

// follows reports whether this is the front-end of a node that follows.
func (f *Frontend) follows() bool { return f.opts.Leader != nil }

// askLeader asks the front-end of the leader.
func (f *Frontend) askLeader(q *question) (answer, error) {
	ask := f.opts.Leader.Ask
	if q.Do == askRun {
		ask = f.opts.Leader.AskOnce
	}
	a, err := frontends.AskLeader[answer](ask, q)
	if err != nil {
		return a, core.ErrShutdown
	}
	return a, nil
}

// learn asks the leader for the settings of a queue; nil: SQS clients have not made it, or there is no leader.
func (f *Frontend) learn(name string) *queue {
	f.mu.RLock()
	drops := f.drops
	f.mu.RUnlock()
	a, err := f.askLeader(&question{Do: askQueue, Queue: name})
	if err != nil || a.Queue == nil {
		return nil
	}
	a.Queue.redrive, _ = parseRedrive(a.Queue.Attributes[redrivePolicy])
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.drops == drops { // else it may be older than the change
		f.queues[name] = a.Queue
	}
	return a.Queue
}

// forward lets the leader run an action.
func (q *request) forward(r *http.Request, body []byte) (outcome, error) {
	a, err := q.front.askLeader(&question{Do: askRun, From: q.from.sender(), Run: &forwarded{
		Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Target: r.Header.Get("X-Amz-Target"),
		ContentType: r.Header.Get("Content-Type"), Accept: r.Header.Get("Accept"), Host: q.host, Trace: q.trace,
		Body: body,
	}})
	return outcome{reply: a.Reply}, err
}

// findAttempt is attempts.find for clients of all nodes.
func (f *Frontend) findAttempt(queue, id string) ([]core.Reply, bool) {
	if !f.follows() || id == "" {
		return f.attempts.find(queue, id, f.broker.Now())
	}
	a, err := f.askLeader(&question{Do: askAttempt, Queue: queue, Attempt: id})
	return a.Taken, a.Found && err == nil
}

// rememberAttempt is attempts.remember for clients of all nodes.
func (f *Frontend) rememberAttempt(queue, id string, taken []core.Reply) {
	if !f.follows() || id == "" {
		f.attempts.remember(queue, id, taken, f.broker.Now())
		return
	}
	q := &question{Do: askRemember, Queue: queue, Attempt: id, Taken: bare(taken)}
	_, _ = f.askLeader(q) // without a link none is needed
}

// countEvery is how often a node tells the leader what it has counted.
const countEvery = time.Second

// reportCounts tells the leader what the node has counted, until ctx ends.
func (f *Frontend) reportCounts(ctx context.Context) {
	tick := time.NewTicker(countEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if counts := f.meter.take(); len(counts) > 0 {
			f.opts.Leader.Inform(frontends.ToJSON(&question{Do: askCount, Counts: counts}))
		}
	}
}

// askFair is makeFair by the leader.
func (q *request) askFair(name string) error {
	a, err := q.front.askLeader(&question{Do: askFair, Queue: name, From: q.from.sender()})
	switch {
	case err != nil:
		return err
	case a.Error != "":
		return refuse(unavailable, "The queue could not be changed.")
	}
	return nil
}
