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

// sentCalls is a pipeline that records the calls.
type sentCalls struct {
	raft.AppendPipeline
	calls []*raft.AppendEntriesRequest
}

func (s *sentCalls) AppendEntries(
	in *raft.AppendEntriesRequest, _ *raft.AppendEntriesResponse,
) (raft.AppendFuture, error) {
	s.calls = append(s.calls, in)
	return nil, nil
}

// Calls are limited by bytes, so that they pass a slow link in time. All entries of a large call are sent, in order.
func TestLargeCallsAreSentInParts(t *testing.T) {
	t.Parallel()
	var entries []*raft.Log
	for i := range uint64(64) {
		entries = append(entries, &raft.Log{Index: 101 + i, Term: 3 + i/10, Data: make([]byte, partBytes)})
	}
	entries[7].Data = make([]byte, 2*maxCallBytes) // it fits into no call, and goes alone
	sent := &sentCalls{}
	in := &raft.AppendEntriesRequest{
		Term: 9, PrevLogEntry: 100, PrevLogTerm: 3, Entries: entries, LeaderCommitIndex: 90,
	}
	if _, err := (&pipeline{AppendPipeline: sent}).AppendEntries(in, &raft.AppendEntriesResponse{}); err != nil {
		t.Fatal(err)
	}
	if len(in.Entries) != 64 || in.PrevLogEntry != 100 {
		t.Error("the call of raft was changed")
	}
	index, term := uint64(100), uint64(3)
	for _, call := range sent.calls {
		if call.PrevLogEntry != index || call.PrevLogTerm != term || call.Term != 9 || call.LeaderCommitIndex != 90 {
			t.Errorf("after entry %d of term %d: %+v", index, term, call)
		}
		size := 0
		for _, l := range call.Entries {
			size += len(l.Data)
			if l.Index != index+1 {
				t.Errorf("entry %d after %d", l.Index, index)
			}
			index, term = l.Index, l.Term
		}
		if size > maxCallBytes && len(call.Entries) > 1 || len(call.Entries) == 0 {
			t.Errorf("a call with %d entries and %d bytes", len(call.Entries), size)
		}
	}
	if index != 164 {
		t.Errorf("entries up to %d were sent", index)
	}
}
