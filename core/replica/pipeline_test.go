package replica

import (
	"io"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// refusing is a member that refuses all entries.
func refusing(t *testing.T) raft.ServerAddress {
	t.Helper()
	member := listening(t)
	go func() { // ends with the test's program
		for call := range member.Consumer() {
			call.Respond(&raft.AppendEntriesResponse{}, nil)
		}
	}()
	return member.LocalAddr()
}

func listening(t *testing.T) *raft.NetworkTransport {
	t.Helper()
	tr, err := raft.NewTCPTransport("127.0.0.1:0", nil, 1, 10*time.Second, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close() }) // nothing is sent any more
	return tr
}

// raft reads no result after a refused call. Another call that it has already begun must fail, and not block.
func TestCallsAfterARefusedCallFail(t *testing.T) {
	t.Parallel()
	tr := &transport{NetworkTransport: listening(t)}
	p, err := tr.AppendEntriesPipeline("n2", refusing(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }() // it is closed already
	call := func() error {
		_, err := p.AppendEntries(&raft.AppendEntriesRequest{Term: 1, PrevLogEntry: 7}, &raft.AppendEntriesResponse{})
		return err
	}
	if err := call(); err != nil {
		t.Fatal(err)
	}
	if f := <-p.Consumer(); f.Response().Success {
		t.Error("entries were accepted")
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for call() == nil {
		}
	}()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("a call does not return")
	}
}
