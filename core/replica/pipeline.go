package replica

import (
	"sync"

	"github.com/hashicorp/raft"
)

// pipeline is raft's pipeline of calls to one member, but it ends at the first call that the member refuses. raft reads
// no more results then. If it has just sent another call, the calls before it wait for a reader of their results, and
// raft waits for a place in the pipeline: the member would get heartbeats but no entries until another node leads.
type pipeline struct {
	raft.AppendPipeline
	results chan raft.AppendFuture
	ended   chan struct{}
	once    sync.Once
}

// AppendEntriesPipeline implements raft.Transport.
func (t *transport) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	inner, err := t.NetworkTransport.AppendEntriesPipeline(id, to)
	if err != nil {
		return nil, err
	}
	p := &pipeline{AppendPipeline: inner, results: make(chan raft.AppendFuture, 1), ended: make(chan struct{})}
	go p.pass() // ends with Close
	return p, nil
}

// AppendEntries implements raft.AppendPipeline. Entries that do not fit into one call go in several: raft takes the
// result of each, and counts on all entries being sent.
func (p *pipeline) AppendEntries(
	in *raft.AppendEntriesRequest, out *raft.AppendEntriesResponse,
) (raft.AppendFuture, error) {
	rest := in.Entries
	for n := fitting(rest); n < len(rest); n = fitting(rest) {
		part := *in
		part.Entries = rest[:n:n]
		if _, err := p.AppendPipeline.AppendEntries(&part, new(raft.AppendEntriesResponse)); err != nil {
			return nil, err
		}
		last := rest[n-1]
		rest = rest[n:]
		next := *in
		next.PrevLogEntry, next.PrevLogTerm, next.Entries = last.Index, last.Term, rest
		in = &next
	}
	return p.AppendPipeline.AppendEntries(in, out)
}

// pass passes results on. A refused call is the last one: it ends the pipeline, so that raft's next call fails.
func (p *pipeline) pass() {
	for {
		select {
		case f := <-p.AppendPipeline.Consumer():
			refused := f.Error() != nil || !f.Response().Success
			select {
			case p.results <- f:
			case <-p.ended:
				return
			}
			if refused {
				_ = p.Close() // always nil
				return
			}
		case <-p.ended:
			return
		}
	}
}

// Consumer implements raft.AppendPipeline.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.results }

// Close implements raft.AppendPipeline.
func (p *pipeline) Close() error {
	p.once.Do(func() { close(p.ended) })
	return p.AppendPipeline.Close()
}
