package remote

import (
	"bytes"
	"slices"

	"broker/core"
)

// fate is what becomes of an operation of a client when the leader changes while it is under way. It is known of an
// operation without a reply whether the next leader's history has it: see Server and trace. Of a reply that depends on
// a commit it is known whether that commit is lost.
//
//	            no reply has come                          its reply depends on a lost commit
//	reads       asked again                                asked again: if the reply is not the same, or was one of
//	                                                       several, the connection is closed
//	registers   asked again                                nothing: the node registers its effect again
//	repeats     asked again: twice is as once              asked again, as for changes
//	changes     asked again unless the history may have    asked again: if the reply is not the same, the
//	            it; otherwise, if it has all of the        connection is closed
//	            message and the client waits for no
//	            reply, nothing; otherwise the connection
//	            is closed
//	never       the connection is closed                   nothing
type fate uint8

const (
	_ fate = iota
	reads
	registers
	repeats
	changes
	never
)

// counts reports whether operations have one that must not be applied twice.
func counts(ops []core.Op) bool {
	return slices.ContainsFunc(ops, func(op core.Op) bool { return !op.ReadOnly() && fateOf(op) == changes })
}

// trace is what the next leader's history has of a message without a reply.
type trace uint8

// untraced: no leader has followed since it was sent. absent: nothing, now and later. begun: its number. That stands in
// front of its operations, and a commit may have ended in between, so they may be lost. whole: the number of a later
// message, so all of it.
const (
	untraced trace = iota
	absent
	begun
	whole
)

// remaining are the operations of a message which the history has as a whole, without those whose client of a protocol
// waits for no reply. known is false if nobody knows the reply to one, or if one that is asked again would see what
// stood behind it.
func remaining(ops []core.Op, of core.Protocol) (rest, done []core.Op, known bool) {
	looks := false
	for _, op := range ops {
		f := fateOf(op)
		switch {
		case of.EndsUnanswered() && endOf(op) != 0:
			if looks {
				return nil, nil, false
			}
			done = append(done, op)
			continue
		case f == changes || f == never:
			return nil, nil, false
		case f == reads || f == repeats:
			looks = true
		}
		rest = append(rest, op)
	}
	return rest, done, true
}

// endOf is the job that an operation ends or reports on; zero: it is another operation, or names the job by its id.
func endOf(op core.Op) (seq uint64) {
	switch op := op.(type) {
	case *core.Complete:
		return op.Ref.Seq
	case *core.Fail:
		return op.Ref.Seq
	case *core.Report:
		return op.Ref.Seq
	}
	return 0
}

// again reports whether operations without a reply are asked again. applied says that the next leader's history may
// have them, as far as they change anything.
func again(ops []core.Op, applied bool) bool {
	return !slices.ContainsFunc(ops, func(op core.Op) bool {
		f := fateOf(op)
		return f == never || f == changes && applied
	})
}

// sameReply reports whether the second reply to an operation says what the first said. The end of a job that is not
// there any more is not the same: its submission is lost, and its client's node may ask it again. Then it runs again.
func sameReply(op core.Op, first, second *core.Reply) bool {
	if fateOf(op) == reads {
		return bytes.Equal(bytesOf(*first), bytesOf(*second))
	}
	if first.Answer != nil || second.Answer != nil {
		return false
	}
	if (first.Err == nil) != (second.Err == nil) || first.Err != nil && first.Err.Error() != second.Err.Error() {
		return false
	}
	return first.Kind == second.Kind && first.Seq == second.Seq && first.N == second.N &&
		(first.Kind == core.Submitted || first.Cursor == second.Cursor) // the client is not told when a job was created
}

// bytesOf is all that a reply says, without its commit.
func bytesOf(r core.Reply) []byte {
	r.Commit = 0
	var w coder
	reply(&w, &r)
	return w.buf
}
