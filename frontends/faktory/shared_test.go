package faktory

import (
	"fmt"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

// setupNodes opens a leader and two nodes that follow.
func setupNodes(t *testing.T, o Options) (leader, a, b *frontendtest.Stage) {
	t.Helper()
	leader, nodes := frontendtest.OpenNodes(t, func(b core.Broker) frontends.Frontend {
		return onStage(access.Unrestricted(b, core.Faktory), o)
	}, func(b core.Broker, l frontends.Leader) frontends.Frontend {
		o := o
		o.Leader = l
		return onStage(access.Unrestricted(b, core.Faktory), o)
	}, 2)
	return leader, nodes[0], nodes[1]
}

// The connections of a worker may be at several nodes.
func TestWorkerOfSeveralNodes(t *testing.T) {
	t.Parallel()
	leader, a, b := setupNodes(t, Options{})
	ofA, ofB := dial(a, "of a", "w1"), dial(b, "of b", "w1")
	f := leader.Front.(*Frontend)
	if all := f.Workers(); len(all) != 1 || all[0].Connections != 2 || all[0].RemoteAddr == "" {
		t.Fatalf("the leader knows %+v", all)
	}
	ofA.Send("PUSH {\"jid\":\"12345678\",\"jobtype\":\"x\",\"args\":[]}\r\n")
	ofA.Want("+OK\r\n")
	ofA.Send("BEAT {\"wid\":\"w1\",\"current_state\":\"quiet\",\"rss_kb\":99}\r\n")
	ofA.Want("$17\r\n{\"state\":\"quiet\"}\r\n")
	ofB.Send("BEAT {\"wid\":\"w1\"}\r\n") // its node knows by the answer at the latest
	ofB.Want("$17\r\n{\"state\":\"quiet\"}\r\n")
	ofB.Send("FETCH default\r\n")
	leader.Advance(2 * time.Second)
	ofB.Want("$-1\r\n")
	if err := f.SetWorkerState("w1", "terminate"); err != nil {
		t.Fatal(err)
	}
	ofB.Send("BEAT {\"wid\":\"w1\"}\r\n")
	ofB.Want("$21\r\n{\"state\":\"terminate\"}\r\n")
	if all := f.Workers(); all[0].State != "terminate" || all[0].RSSKB != 0 {
		t.Errorf("the leader knows %+v", all)
	}
	ofB.Send("BEAT {\"wid\":\"w2\"}\r\n")
	ofB.Want("-ERR unknown worker w2\r\n")
	ofA.Hangup()
	if all := f.Workers(); len(all) != 1 || all[0].Connections != 1 {
		t.Errorf("the leader knows %+v", all)
	}
	b.Unlink()
	if all := f.Workers(); len(all) != 0 {
		t.Errorf("without the node the leader knows %+v", all)
	}
}

// With the next leader, a node registers its connections: the list of workers is as it was.
func TestNodeRegistersItsWorkersWithTheNextLeader(t *testing.T) {
	t.Parallel()
	leader, a, b := setupNodes(t, Options{})
	first, second, producer := dial(a, "first", "w1"), dial(a, "second", "w1"), dial(a, "producer", "")
	other := dial(b, "other", "w1")
	gone := dial(a, "gone", "w2")
	leader.Advance(20 * time.Second)
	second.Send("BEAT {\"wid\":\"w1\",\"rss_kb\":99}\r\n")
	second.Want("+OK\r\n")
	gone.Hangup()
	f := leader.Front.(*Frontend)
	if err := f.SetWorkerState("w1", "quiet"); err != nil {
		t.Fatal(err)
	}
	first.Send("BEAT {\"wid\":\"w1\",\"rss_kb\":98}\r\n")
	first.Want("$17\r\n{\"state\":\"quiet\"}\r\n")
	before, counted := f.Workers(), f.counts().Connections
	other.Hangup() // a and nothing else knows the worker
	leader.Advance(time.Second)
	a.Relink()
	before[0].Connections, counted = 2, counted-1
	if all := f.Workers(); fmt.Sprint(all) != fmt.Sprint(before) || f.counts().Connections != counted {
		t.Errorf("the leader knows %+v and %d connections, and knew %+v and %d", all, f.counts().Connections, before, counted)
	}
	producer.Send("QUEUE LATENCY nothing\r\n")
	producer.Want("$13\r\n{\"nothing\":0}\r\n")
	for _, c := range []*frontendtest.Client{first, second, producer} {
		c.Hangup()
	}
	if all := f.Workers(); len(all) != 0 || f.counts().Connections != 0 {
		t.Errorf("the leader knows %+v and %d connections", all, f.counts().Connections)
	}
}

// A connection whose worker belongs to another client when its node comes to the next leader is closed.
func TestConnectionOfAWorkerOfOthersIsClosedByTheNextLeader(t *testing.T) {
	t.Parallel()
	_, a, _ := setupNodes(t, Options{})
	c := dial(a, "c", "w1")
	a.Front.(*Frontend).Register(func(_ []byte, handle func([]byte)) {
		handle(frontends.ToJSON(answer{Refused: refusedOwner}))
	})
	c.WantClosed()
}

func TestSilentWorkerOfANodeIsDisconnected(t *testing.T) {
	t.Parallel()
	leader, a, b := setupNodes(t, Options{})
	silent, beats, producer := dial(a, "silent", "w1"), dial(b, "beats", "w2"), dial(a, "producer", "")
	leader.Advance(silentFor - time.Second)
	beats.Send("BEAT {\"wid\":\"w2\"}\r\n")
	beats.Want("+OK\r\n")
	leader.Advance(time.Second)
	silent.WantClosed()
	for _, c := range []*frontendtest.Client{beats, producer} {
		c.Send("QUEUE LATENCY nothing\r\n")
		c.Want("$13\r\n{\"nothing\":0}\r\n")
	}
}

func TestInfoCountsTheClientsOfAllNodes(t *testing.T) {
	t.Parallel()
	leader, a, b := setupNodes(t, Options{})
	dial(leader, "producer", "")
	dial(a, "worker", "w1").Send("BEAT {\"wid\":\"w1\"}\r\n")
	a.Front.Tick(a.Clock.Now()) // says how many commands there were
	a.Settle()
	c := dial(b, "other", "w2")
	c.Send("INFO\r\n")
	info := object(t, c)
	for path, want := range map[string]int{"connections": 3, "command_count": 2} {
		if got := at(info, "server", path); got != number(want) {
			t.Errorf("%s is %v, want %d", path, got, want)
		}
	}
	if got := at(info, "faktory", "tasks", "Workers", "size"); got != number(2) {
		t.Errorf("%v workers", got)
	}
}

func TestConnectionLimitIsThatOfAllNodes(t *testing.T) {
	t.Parallel()
	_, a, b := setupNodes(t, Options{MaxConnections: 2})
	first := dial(a, "first", "")
	dial(b, "second", "")
	c := b.Dial("third")
	c.Want("+HI {\"v\":2}\r\n")
	c.Send("HELLO {\"v\":2}\r\n")
	c.Want("+OK\r\n-ERR too many connections: 3\r\n")
	c.WantClosed()
	first.Hangup()
	dial(b, "fourth", "")
}

// The first batch of a store fixes the prefix of all ids, whichever node opens it.
func TestBatchIDsAreTheSameOnAllNodes(t *testing.T) {
	t.Parallel()
	leader, a, b := setupNodes(t, Options{})
	ofA, ofB, ofLeader := dial(a, "of a", ""), dial(b, "of b", ""), dial(leader, "of the leader", "")
	first := openBatch(t, ofA)
	second := openBatch(t, ofB)
	third := openBatch(t, ofLeader)
	for _, c := range []*frontendtest.Client{ofA, ofB, ofLeader} {
		for _, bid := range []string{first, second, third} {
			wantBatch(t, c, bid)
		}
	}
	if len(first) < len("b-q4t6zk2m0x9hc1e7-1") {
		t.Errorf("the first batch has no prefix: %s", first)
	}
}
