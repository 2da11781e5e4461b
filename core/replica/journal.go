package replica

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"broker/core/engine"
	"broker/core/internal/record"
)

// journal is the engine.Journal of a leader for one term. Any error ends it, because it is then unknown whether the
// entry is committed. One goroutine appends at a time.
type journal struct {
	raft  *raft.Raft
	epoch uint64 // raft's term
	chain uint64 // of the last entry
	buf   []byte
	ended atomic.Bool
	over  chan struct{} // closed by end

	format          atomic.Int32 // of the entries
	committedFormat atomic.Int32 // of the last one

	failed chan<- *journal // gets this journal when it fails; nil until the Leadership begins
}

// Append implements engine.Journal.
func (j *journal) Append(e *record.Entry) error {
	if j.ended.Load() {
		return engine.ErrReplaced
	}
	e.Epoch, e.Chain, e.Format = j.epoch, j.chain, int(j.format.Load())
	var err error
	if j.buf, err = record.AppendEntry(j.buf[:0], e); err != nil {
		return j.fail(e, err)
	}
	chain := record.ChainOf(j.buf)
	parts, done := cut(j.buf, e.Position), make(chan error, 1)
	go func() { done <- j.replicate(parts) }() // ends with raft at the latest; only a hanging disk delays it
	select {
	case err = <-done:
	case <-j.over:
		err = errLeadEnded
	}
	if err != nil {
		return j.fail(e, err)
	}
	if cap(j.buf) > maxIdleBuf {
		j.buf = nil
	}
	j.chain = chain
	j.committedFormat.Store(int32(e.Format))
	return nil
}

// fail ends the journal with the error of an entry.
func (j *journal) fail(e *record.Entry, err error) error {
	j.ended.Store(true)
	select {
	case j.failed <- j:
	default: // failed is nil, or still holds an earlier journal
	}
	return fmt.Errorf("%w: entry %d: %w", engine.ErrReplaced, e.Number, err)
}

// errLeadEnded ends the wait for an entry when the node stops leading.
var errLeadEnded = errors.New("this node has stopped leading")

// replicate makes raft commit and apply the parts of an entry.
func (j *journal) replicate(parts [][]byte) error {
	var last raft.ApplyFuture
	for _, part := range parts {
		last = j.raft.Apply(part, 0)
	}
	// The last part is committed and applied after all earlier parts. If an earlier part is missing, the last one is
	// refused.
	err := last.Error()
	if err == nil {
		err, _ = last.Response().(error)
	}
	return err
}

// end ends the journal when the node stops leading.
func (j *journal) end() {
	j.ended.Store(true)
	close(j.over)
}

// maxIdleBuf is the size of the largest encoding buffer that is kept between entries.
const maxIdleBuf = 1 << 20
