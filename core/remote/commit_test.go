package remote

import (
	"encoding/binary"
	"net"
	"testing"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
)

// A node wakes its clients itself once it is told of a commit. One of a build before does not say that it does so: the
// leader tells it of each client.
func TestLeaderTellsACommitOnceOrToEachClient(t *testing.T) {
	t.Parallel()
	const clients = 8
	for name, wakes := range map[string]bool{"this build": true, "the build before": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLeader(t, engine.Options{Dir: "data", FS: coretest.MemoryFS(), ManualCommits: true})
			near, far := net.Pipe()
			go func() { _ = l.server.Serve(far) }() // ends with the link
			defer func() { _ = near.Close() }()
			hello := (&nodeHello{node: "n", wakes: wakes}).encode()
			if !wakes {
				hello = hello[:len(hello)-1]
			}
			go func() { _ = writeHello(near, hello) }()
			if _, err := readHello(near); err != nil {
				t.Fatal(err)
			}
			said := make(chan byte, 1024)
			go func() { // ends with the link
				in := newReader(near)
				for {
					kind, _, err := in.next(func(byte) bool { return false })
					if err != nil {
						close(said)
						return
					}
					said <- kind
				}
			}()
			await := func(kind byte) (before map[byte]int) {
				before = make(map[byte]int)
				for k := range said {
					if k == kind {
						return before
					}
					before[k]++
				}
				t.Fatal("the link has ended")
				return nil
			}
			await(msgHistory)
			for id := core.ClientID(1); id <= clients; id++ {
				if _, err := near.Write(submission(id)); err != nil {
					t.Fatal(err)
				}
				await(msgDone)
			}
			l.Flush()
			if wakes {
				await(msgCommit)
			} else {
				for range clients {
					await(msgPush)
				}
			}
			if _, err := near.Write(message(msgAsk, []byte{1, 'q'})); err != nil {
				t.Fatal(err)
			}
			if more := await(msgAnswer); more[msgPush] > 0 {
				t.Errorf("%d messages to clients beside those that say enough", more[msgPush])
			}
		})
	}
}

// message is a message of a node.
func message(kind byte, say []byte) []byte {
	return append(append(binary.AppendUvarint(nil, uint64(len(say))+1), kind), say...)
}

// submission are the messages that open a client and submit a job for it.
func submission(id core.ClientID) []byte {
	var open, do coder
	closes := false
	unsigned(&open, &id)
	clientOptions(&open, &core.ClientOptions{Protocol: core.Workq}, &closes)
	ops := []core.Op{&core.Submit{Tag: 1, Job: &core.Job{Queue: "q", Origin: core.Workq}}}
	unsigned(&do, &id)
	operations(&do, &ops)
	return append(message(msgOpen, open.buf), message(msgDo, do.buf)...)
}

// A client that has several replies is woken for the commit of each, through Durable if it has that.
func TestClientIsWokenForEachCommit(t *testing.T) {
	t.Parallel()
	l := newLeader(t, engine.Options{Dir: "data", FS: coretest.MemoryFS(), ManualCommits: true})
	n := l.node(nil)
	w, durable := open(t, n), &worker{t: t, broker: n, woken: make(chan struct{}, 16)}
	durable.id = n.Open(core.ClientOptions{
		Protocol: core.Workq, Wake: func() {}, Durable: func() { durable.woken <- struct{}{} },
	})
	submit := func(w *worker) core.Commit {
		return w.do(&core.Submit{Tag: 1, Job: &core.Job{Queue: "q", Origin: core.Workq}})[0].Commit
	}
	for range 3 {
		submit(w)
		first := submit(w)
		second := submit(durable)
		l.Flush()
		w.awaitCommit(first)
		durable.awaitCommit(second)
	}
}
