package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"broker/core"
	"broker/core/clock"
	"broker/core/coretest"
	"broker/core/engine"
)

// leader is an engine with a server for other nodes.
type leader struct {
	*engine.Engine
	t      *testing.T
	server *Server
	told   chan string // what was told in either direction
	left   atomic.Int32
}

func newLeader(t *testing.T, o engine.Options) *leader {
	t.Helper()
	e, err := engine.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	l := &leader{Engine: e, t: t, told: make(chan string, 16)}
	l.server = NewServer(e, ServerOptions{
		Note: []byte("note"), Owner: l, Term: 1,
	})
	l.server.Settle(canceled(), nil, e.Settle)
	t.Cleanup(func() {
		l.server.Close(canceled())
		if err := e.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// Asked implements Owner: it answers with the question, after it was called.
func (l *leader) Asked(n *Node, question []byte, answer func([]byte)) {
	go func() {
		n.Tell(append([]byte("asked "), question...))
		answer(append([]byte("answer to "), question...))
	}()
}

// Told implements Owner.
func (l *leader) Told(_ *Node, say []byte) { l.told <- string(say) }

// Left implements Owner.
func (l *leader) Left(*Node) { l.left.Add(1) }

// said is for BrokerOptions.
func (l *leader) said(say []byte) { l.told <- string(say) }

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// follower is a node with a link to the leader.
type follower struct {
	*Broker
	*Uplink
}

var followers atomic.Int64

// node links a follower to the leader through a connection that wrap may disturb.
func (l *leader) node(wrap func(net.Conn) net.Conn) *follower {
	l.t.Helper()
	near, far := net.Pipe()
	go func() { _ = l.server.Serve(far) }() // ends with the link
	if wrap != nil {
		near = wrap(near)
	}
	b := NewBroker(BrokerOptions{Node: fmt.Sprint("n", followers.Add(1)), Clock: clock.System{}, Told: l.said})
	up, err := b.Dial(near)
	if err != nil {
		l.t.Fatal(err)
	}
	<-up.Ready()
	l.t.Cleanup(b.Shut)
	return &follower{b, up}
}

// worker is a client with what woke and closed it.
type worker struct {
	t      *testing.T
	broker core.Broker
	id     core.ClientID
	woken  chan struct{}
	closed chan struct{}
}

func (w *worker) isClosed() bool {
	select {
	case <-w.closed:
		return true
	default:
		return false
	}
}

func open(t *testing.T, b core.Broker) *worker {
	t.Helper()
	return openAs(t, b, core.Workq)
}

// openAs opens a client of a protocol.
func openAs(t *testing.T, b core.Broker, p core.Protocol) *worker {
	t.Helper()
	w := &worker{t: t, broker: b, woken: make(chan struct{}, 1024), closed: make(chan struct{})}
	var once atomic.Bool
	w.id = b.Open(core.ClientOptions{
		Protocol: p, Address: "10.0.0.1:2", Name: "w",
		Wake: func() { w.woken <- struct{}{} },
		Close: func() {
			if !once.Swap(true) {
				close(w.closed)
			}
		},
	})
	return w
}

func (w *worker) do(ops ...core.Op) []core.Reply { return w.broker.Do(w.id, ops, nil) }

func (w *worker) submit() core.Reply {
	w.t.Helper()
	const id = "a"
	job := &core.Job{ID: id, Queue: "q", Origin: core.Workq, Body: []byte("body of " + id)}
	all := w.do(&core.Submit{Tag: 1, Job: job})
	if len(all) != 1 || all[0].Kind != core.Submitted {
		w.t.Fatalf("submission of %s: %+v", id, all)
	}
	return all[0]
}

func (w *worker) lease(wait bool) []core.Reply {
	var until core.Instant
	if wait {
		until = w.broker.Now().Add(time.Hour)
	}
	return w.do(&core.Lease{Tag: 2, Queues: []string{"q"}, Deadline: until})
}

// next waits for replies that come later.
func (w *worker) next() []core.Reply {
	w.t.Helper()
	end := time.After(time.Minute)
	for {
		select {
		case <-w.woken:
			if all := w.do(); len(all) > 0 {
				return all
			}
		case <-end:
			w.t.Fatal("nothing comes")
		}
	}
}

func TestWaiterOfOneNodeGetsJobOfAnother(t *testing.T) {
	l := newLeader(t, engine.Options{Durability: engine.None})
	first, second := open(t, l.node(nil)), open(t, l.node(nil))
	if all := first.lease(true); len(all) != 0 {
		t.Fatalf("there is no job: %+v", all)
	}
	second.submit()
	all := first.next()
	if len(all) != 1 || all[0].Kind != core.Assigned || string(all[0].Job.Body) != "body of a" {
		t.Fatalf("came %+v", all)
	}
	if all := first.do(&core.Complete{Tag: 3, Ref: core.Ref{ID: "a"}}); len(all) != 1 || all[0].Kind != core.Accepted {
		t.Errorf("completion: %+v", all)
	}
	if all := second.do(&core.Complete{Tag: 4, Ref: core.Ref{ID: "a"}}); len(all) != 1 ||
		!errors.Is(all[0].Err, core.ErrNotFound) {
		t.Errorf("second completion: %+v", all)
	}
}

func TestReplyWaitsForTheLeadersCommit(t *testing.T) {
	l := newLeader(t, engine.Options{Dir: "data", FS: coretest.MemoryFS(), ManualCommits: true})
	b := l.node(nil)
	w := open(t, b)
	r := w.submit()
	if r.Commit == 0 || b.Committed() >= r.Commit {
		t.Fatalf("reply of commit %d at %d", r.Commit, b.Committed())
	}
	l.Flush()
	w.awaitCommit(r.Commit)
	if all := w.do(); len(all) > 0 {
		t.Errorf("more than once: %+v", all)
	}
}

// awaitCommit waits until the client is woken and told of a commit. It may be woken without a reason.
func (w *worker) awaitCommit(c core.Commit) {
	for w.broker.Committed() < c {
		<-w.woken
	}
}

func (l *leader) job(id string) *core.JobInfo {
	l.t.Helper()
	for _, r := range core.DoOnce(l, core.Internal, &core.Inspect{Tag: 1, Ref: core.Ref{ID: id}}) {
		if r.Kind == core.Inspected {
			return r.Info
		}
	}
	l.t.Fatalf("no job %s", id)
	return nil
}

func (l *leader) eventually(what string, is func() bool) {
	l.t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) { //nolint:forbidigo // a test
		if time.Now().After(end) { //nolint:forbidigo // a test
			l.t.Fatal("not in time: " + what)
		}
	}
}

// A job that was pushed, and that its client never fetched, has not been handed out.
func TestJobThatWasNotFetchedReturnsUncounted(t *testing.T) {
	for _, how := range []string{"cancelled", "closed", "link lost"} {
		t.Run(how, func(t *testing.T) {
			l := newLeader(t, engine.Options{Durability: engine.None})
			b := l.node(nil)
			w, other := open(t, b), open(t, l)
			w.lease(true)
			other.submit()
			<-w.woken // it does not look
			l.eventually("leased", func() bool { return l.job("a").State == core.Leased })
			switch how {
			case "cancelled":
				if all := w.do(&core.CancelWaits{}); len(all) > 0 {
					t.Errorf("after CancelWaits: %+v", all)
				}
			case "closed":
				b.Close(w.id)
			default:
				b.Hangup()
			}
			l.eventually("ready again", func() bool { return l.job("a").State == core.Ready })
			if n := l.job("a").Attempts; n != 0 {
				t.Errorf("it counts %d attempts", n)
			}
			if how != "cancelled" {
				return
			}
			if all := w.lease(true); len(all) != 1 || all[0].Kind != core.Assigned {
				t.Errorf("the next lease: %+v", all)
			}
		})
	}
}

func TestEndOfNodeEndsItsClientsOnBothSides(t *testing.T) {
	l := newLeader(t, engine.Options{Durability: engine.None})
	b := l.node(nil)
	w, other := open(t, b), open(t, l)
	other.submit()
	if all := w.lease(false); len(all) != 1 || all[0].Kind != core.Assigned {
		t.Fatalf("lease: %+v", all)
	}
	if _, clients, _ := l.server.Counts(); clients != 1 {
		t.Errorf("%d clients", clients)
	}
	b.Shut()
	<-w.closed
	<-b.Gone()
	l.eventually("its lease has ended", func() bool { return l.job("a").State == core.Ready })
	if all := w.do(&core.Sleep{Tag: 9}); len(all) != 1 || !errors.Is(all[0].Err, core.ErrShutdown) || !b.Stopped() {
		t.Errorf("after the end: %+v", all)
	}
	late := open(t, b)
	<-late.closed
	l.eventually("nothing is left", func() bool {
		links, clients, _ := l.server.Counts()
		return links == 0 && clients == 0
	})
}

// What was answered before a leader stops is told with its commit.
func TestStoppingLeaderTellsItsLastCommits(t *testing.T) {
	l := newLeader(t, engine.Options{Dir: "data", FS: coretest.MemoryFS(), ManualCommits: true})
	b := l.node(nil)
	w := open(t, b)
	r := w.submit()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stopped := make(chan struct{})
	go func() {
		l.server.Close(ctx)
		close(stopped)
	}()
	l.Flush()
	<-w.woken
	if b.Committed() < r.Commit {
		t.Errorf("commit %d is not told", r.Commit)
	}
	<-stopped
	<-b.Gone()
	if !errors.Is(b.Reason(), errBye) {
		t.Errorf("the link ends with %v", b.Reason())
	}
}

func TestClientIsDisconnectedThroughItsNode(t *testing.T) {
	l := newLeader(t, engine.Options{Durability: engine.None})
	w := open(t, l.node(nil))
	w.lease(false)
	var id core.ClientID
	for _, r := range core.DoOnce(l, core.Internal, &core.ListClients{Tag: 1, Protocol: core.Workq}) {
		if len(r.Clients) != 1 || r.Clients[0].Address != "10.0.0.1:2" || r.Clients[0].Name != "w" {
			t.Fatalf("clients %+v", r.Clients)
		}
		id = r.Clients[0].ID
	}
	core.DoOnce(l, core.Internal, &core.DisconnectClient{Tag: 1, Client: id})
	<-w.closed
}

func TestOwnerIsToldInOrder(t *testing.T) {
	l := newLeader(t, engine.Options{Durability: engine.None})
	b := l.node(nil)
	if string(b.Note()) != "note" {
		t.Errorf("the leader's note is %q", b.Note())
	}
	for i := range 3 {
		b.Tell(fmt.Append(nil, i))
	}
	for i := range 3 {
		if say := <-l.told; say != fmt.Sprint(i) {
			t.Errorf("told %s, not %d", say, i)
		}
	}
}

func TestOwnersAskAndTell(t *testing.T) {
	l := newLeader(t, engine.Options{Durability: engine.None})
	b := l.node(nil)
	for i := range 3 {
		question := fmt.Sprint(i)
		answer, err := b.Ask([]byte(question))
		if err != nil || string(answer) != "answer to "+question {
			t.Errorf("%q, %v", answer, err)
		}
		if told := <-l.told; told != "asked "+question {
			t.Errorf("told %q", told)
		}
	}
	b.Inform([]byte("3"))
	if told := <-l.told; told != "asked 3" {
		t.Errorf("told %q", told)
	}
	b.Hangup()
	l.eventually("the owner hears of the end", func() bool { return l.left.Load() == 1 })
	b.Shut()
	if answer, err := b.Ask([]byte("late")); err == nil {
		t.Errorf("without a leader: %q", answer)
	}
}

// asks is an Owner that keeps what it is asked, and answers when the test says so.
type asks struct {
	nobody
	all chan heardQuestion
}

type heardQuestion struct {
	say    string
	answer func([]byte)
}

// Asked implements Owner.
func (a asks) Asked(_ *Node, say []byte, answer func([]byte)) {
	a.all <- heardQuestion{string(say), answer}
}

// A question that has no answer when the link ends is asked again over the next, behind what the owner registers; one
// that must not be asked twice ends.
func TestQuestionsAreAskedAgainBehindRegistrations(t *testing.T) {
	l := newLeader(t, engine.Options{Durability: engine.None})
	owner := asks{all: make(chan heardQuestion, 8)}
	l.server.options.Owner = owner
	var registered atomic.Int32
	b := NewBroker(BrokerOptions{Node: "one", Clock: clock.System{}, Register: func(ask func([]byte, func([]byte))) {
		for _, say := range []string{"first", "second"} {
			ask([]byte(say), func(answer []byte) {
				if string(answer) == "answer to "+say {
					registered.Add(1)
				}
			})
		}
	}})
	t.Cleanup(b.Shut)
	link := func() *Uplink {
		near, far := net.Pipe()
		go func() { _ = l.server.Serve(far) }() // ends with the link
		up, err := b.Dial(near)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"first", "second"} {
			a := <-owner.all
			if a.say != want {
				t.Errorf("asked %q in place of %q", a.say, want)
			}
			select {
			case <-up.Ready():
				t.Error("clients are served before all is registered")
			default:
			}
			a.answer([]byte("answer to " + want))
		}
		<-up.Ready()
		return up
	}
	up := link()
	answers := make(chan string, 2)
	ask := func(name string, by func([]byte) ([]byte, error)) {
		answer, err := by([]byte(name))
		answers <- fmt.Sprintf("%s %q %v", name, answer, err)
	}
	go ask("again", b.Ask)
	<-owner.all
	go ask("once", b.AskOnce)
	<-owner.all
	up.Hangup()
	if got, want := <-answers, fmt.Sprintf("once %q %v", "", errNoLeader); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	go ask("late", b.AskOnce) // it was not sent before: the next leader gets it
	l.eventually("the question waits", func() bool {
		b.questions.mu.Lock()
		defer b.questions.mu.Unlock()
		return len(b.questions.open) == 2
	})
	link()
	for _, want := range []string{"again", "late"} {
		a := <-owner.all
		if a.say != want {
			t.Errorf("asked %q in place of %q", a.say, want)
		}
		a.answer([]byte("yes"))
		if got := <-answers; got != want+` "yes" <nil>` {
			t.Errorf("answered %s", got)
		}
	}
	if n := registered.Load(); n != 4 {
		t.Errorf("%d registrations were answered", n)
	}
	if b.InUse() {
		t.Error("the broker is in use without clients and questions")
	}
}

func TestOtherFormatIsRefused(t *testing.T) {
	l := newLeader(t, engine.Options{Durability: engine.None})
	near, far := net.Pipe()
	go func() { _ = l.server.Serve(far) }()
	go func() { _, _ = io.WriteString(near, helloMagic+"\x00\x00\x00\x63\x00\x00\x00\x00") }()
	_, err := readHello(near)
	if err != nil { // the leader says what it speaks
		t.Error(err)
	}
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection stays: %v", err)
	}
	near, far = net.Pipe()
	go func() {
		_, _ = readHello(far)
		_, _ = io.WriteString(far, helloMagic+"\x00\x00\x00\x63\x00\x00\x00\x00")
	}()
	other := (*FormatError)(nil)
	_, err = NewBroker(BrokerOptions{Node: "n", Clock: clock.System{}}).Dial(near)
	if !errors.As(err, &other) || other.Format != 99 {
		t.Errorf("a leader of another format: %v", err)
	}
}

// stuck is a connection that takes and gives nothing once it is stuck.
type stuck struct {
	net.Conn
	is     atomic.Bool
	closed chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	if s.is.Load() {
		<-s.closed
		return 0, net.ErrClosed
	}
	return s.Conn.Write(p)
}

func (s *stuck) Close() error {
	close(s.closed)
	return s.Conn.Close()
}

func TestStalledLinkIsClosedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t, engine.Options{Durability: engine.None, ManualTimers: true})
		s := &stuck{closed: make(chan struct{})}
		b := l.node(func(c net.Conn) net.Conn {
			s.Conn = c
			return s
		})
		w := open(t, b)
		w.submit()
		s.is.Store(true)
		began := time.Now() //nolint:forbidigo // a test
		if all := w.do(&core.Sleep{Tag: 7}); len(all) != 1 || !errors.Is(all[0].Err, core.ErrShutdown) {
			t.Errorf("over a stalled link: %+v", all)
		}
		<-w.closed
		if took := time.Since(began); took > stallAfter+2*beatEvery+awayFor { //nolint:forbidigo // a test
			t.Errorf("closed after %v", took)
		}
		synctest.Wait()
		if _, clients, _ := l.server.Counts(); clients != 0 {
			time.Sleep(stallAfter + 2*beatEvery) //nolint:forbidigo // a test
		}
		if _, clients, _ := l.server.Counts(); clients != 0 {
			t.Errorf("the leader keeps %d clients", clients)
		}
	})
}

// A link that takes nothing stops those who ask before it buffers more than its bound.
func TestFullLinkStopsThoseWhoAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a link that is stalled for long ends
		l := newLeader(t, engine.Options{Durability: engine.None, ManualTimers: true})
		s := &stuck{closed: make(chan struct{})}
		b := l.node(func(c net.Conn) net.Conn {
			s.Conn = c
			return s
		})
		s.is.Store(true)
		const size = 1 << 20
		for range 3 * maxBuffered / size {
			w := open(t, b)
			go w.do(&core.Submit{Tag: 1, Job: &core.Job{Queue: "q", Body: make([]byte, size)}}) // ends with the link
		}
		synctest.Wait()
		if n := b.Buffered(); n < maxBuffered || n > maxBuffered+2*size {
			t.Errorf("%d bytes are buffered", n)
		}
	})
}

func TestTimeIsTheLeaders(t *testing.T) {
	l := newLeader(t, engine.Options{Durability: engine.None, Clock: clock.OffsetClock{Offset: 100 * time.Hour}})
	b := l.node(nil)
	if off := b.Now().Sub(l.Now()); off.Abs() > time.Minute { // the two are read one after the other
		t.Errorf("the leader's time is off by %v", off)
	}
}

// hears is an Owner that is asked between the operations of a node.
type hears struct {
	nobody
	asked func(say string)
}

// Asked implements Owner.
func (h hears) Asked(_ *Node, say []byte, _ func([]byte)) { h.asked(string(say)) }

// A leader that has much to read does not keep replies to itself whose commit is on its way to other nodes: if it dies,
// the next leader has what nobody knows the reply of.
func TestRepliesLeaveBeforeThoseOfTheNextCommit(t *testing.T) {
	l := newLeader(t, engine.Options{Dir: "data", FS: coretest.MemoryFS(), ManualCommits: true})
	began, done, seen := make(chan struct{}), make(chan struct{}, 2), make(chan bool, 1)
	l.server.options.Owner = hears{asked: func(say string) {
		if say == "commit" {
			l.Flush()
			return
		}
		select {
		case <-done:
			seen <- true
		case <-time.After(time.Minute):
			seen <- false
		}
	}}
	near, far := net.Pipe()
	go func() { _ = l.server.Serve(far) }() // ends with the link
	defer func() { _ = near.Close() }()
	go func() { _ = writeHello(near, (&nodeHello{node: "n"}).encode()) }()
	if _, err := readHello(near); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the link
		in := newReader(near)
		for {
			kind, _, err := in.next(func(byte) bool { return false })
			if err != nil {
				return
			}
			switch kind {
			case msgHistory:
				close(began)
			case msgDone:
				done <- struct{}{}
			}
		}
	}()
	var all []byte
	add := func(kind byte, say func(*coder)) {
		var c coder
		say(&c)
		all = append(append(binary.AppendUvarint(all, uint64(len(c.buf))+1), kind), c.buf...)
	}
	client, closes := core.ClientID(1), false
	submit := func(id string) func(*coder) {
		return func(c *coder) {
			ops := []core.Op{&core.Submit{Tag: 1, Job: &core.Job{ID: id, Queue: "q", Origin: core.Workq}}}
			unsigned(c, &client)
			operations(c, &ops)
		}
	}
	ask := func(say string) func(*coder) {
		return func(c *coder) { c.buf = append(binary.AppendUvarint(c.buf, 1), say...) }
	}
	add(msgOpen, func(c *coder) {
		unsigned(c, &client)
		clientOptions(c, &core.ClientOptions{Protocol: core.Workq}, &closes)
	})
	add(msgDo, submit("a"))
	add(msgAsk, ask("commit"))
	add(msgDo, submit("b"))
	add(msgAsk, ask("whether the first reply has left"))
	<-began
	if _, err := near.Write(all); err != nil { // as a whole
		t.Fatal(err)
	}
	if !<-seen {
		t.Error("the reply to a submission that is committed waits for what the leader still has to read")
	}
}

func TestMalformedMessagesEndTheLink(t *testing.T) {
	for _, m := range [][]byte{
		{1, 99},
		{2, msgDo, 7},
		{3, msgOpen, 1, 1},
		{3, msgClose, 1, 1},
		{2, msgDone, 1},
		binary.AppendUvarint(nil, maxMessage+1),
	} {
		l := newLeader(t, engine.Options{Durability: engine.None})
		near, far := net.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- l.server.Serve(far) }()
		go func() { _ = writeHello(near, (&nodeHello{node: "n"}).encode()) }()
		if _, err := readHello(near); err != nil {
			t.Fatal(err)
		}
		if _, err := near.Write(m); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, errMalformed) {
			t.Errorf("message %v ends the link with %v", m, err)
		}
	}
}
