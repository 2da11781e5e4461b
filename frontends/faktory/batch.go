package faktory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"broker/core"
)

// uncommittedFor is how long a batch may stay open.
const uncommittedFor = 30 * time.Minute

// batch: BATCH NEW {…} | COMMIT bid | OPEN bid | STATUS bid.
func (s *session) batch(p *pipeline, arg []byte) {
	verb, rest, _ := bytes.Cut(arg, []byte{' '})
	sub := strings.ToUpper(string(verb))
	if sub == "NEW" {
		s.newBatch(p, rest)
		return
	}
	bid := string(bytes.TrimSpace(rest))
	number, ok := s.front.bids.parse(bid)
	switch sub {
	case "COMMIT", "OPEN", "STATUS":
		if !ok {
			s.fail(core.ErrNoBatch, bid, 0)
			return
		}
	}
	switch sub {
	case "COMMIT":
		if r := s.ask(&core.CloseBatch{Tag: s.NextTag(), Batch: number}); s.granted(&r, bid) {
			s.ok(r.Commit)
		}
	case "OPEN":
		if r := s.ask(&core.CloseBatch{Tag: s.NextTag(), Batch: number, Reopen: true}); s.granted(&r, bid) {
			s.bulk([]byte(bid), r.Commit)
		}
	case "STATUS":
		if r := s.ask(&core.InspectBatch{Tag: s.NextTag(), Batch: number}); s.granted(&r, bid) {
			p.json = s.front.appendBatch(p.json[:0], r.Batch)
			s.bulk(p.json, r.Commit)
		}
	default:
		s.refuse("no such BATCH subcommand: " + sub)
	}
}

// granted reports whether the broker accepted a request. If not, it answers the request with the error.
func (s *session) granted(r *core.Reply, name string) bool {
	if r.Kind == core.Failed {
		s.fail(r.Err, name, r.Commit)
		return false
	}
	return true
}

// batchDefinition is the argument of BATCH NEW.
type batchDefinition struct {
	ParentBID   string          `json:"parent_bid"`
	Description string          `json:"description"`
	Success     json.RawMessage `json:"success"`
	Complete    json.RawMessage `json:"complete"`
}

// newBatch: BATCH NEW {parent_bid?, description?, success?: job, complete?: job}.
func (s *session) newBatch(p *pipeline, arg []byte) {
	var def batchDefinition
	if !utf8.Valid(arg) {
		s.refuse(errUTF8.Error())
		return
	}
	if err := json.Unmarshal(arg, &def); err != nil {
		s.refuse("invalid JSON: " + referenceTerms.Replace(err.Error()))
		return
	}
	op := &core.OpenBatch{Description: def.Description, OpenUntil: s.front.broker.Now().Add(uncommittedFor)}
	if def.ParentBID != "" {
		parent, ok := s.front.bids.parse(def.ParentBID)
		if !ok {
			s.fail(core.ErrNoBatch, def.ParentBID, 0)
			return
		}
		op.Parent = parent
	}
	var err error
	if op.Success, err = s.callback(p, "success", def.Success); err == nil {
		op.Complete, err = s.callback(p, "complete", def.Complete)
	}
	if err != nil {
		s.refuse(err.Error())
		return
	}
	op.Tag = s.NextTag()
	r := s.front.OpenBatch(op, s.ask)
	name := def.ParentBID
	if r.Kind == core.Failed && r.Job != nil {
		name = s.front.subject(r.Job, r.Err)
	}
	if s.granted(&r, name) {
		s.bulk([]byte(s.front.bids.format(r.Seq)), r.Commit)
	}
}

// callback builds the callback job of a batch. It needs no jid. The error is sent to the client.
func (s *session) callback(p *pipeline, which string, raw json.RawMessage) (*core.Job, error) {
	if len(raw) == 0 || raw[0] == 'n' {
		return nil, nil
	}
	if err := parseWorkUnit(raw, &p.unit); err != nil {
		return nil, err
	}
	build := s.front.newPushedJob
	if len(p.unit.jid) == 0 {
		build = s.front.newJob
	}
	sub, err := build(&p.unit, &s.names, s.front.broker.Now())
	if err == nil {
		err = s.link(&sub)
	}
	if err != nil {
		return nil, fmt.Errorf("invalid %s callback: %w", which, err)
	}
	return sub.job, nil
}

// appendBatch writes the answer of BATCH STATUS.
func (f *Frontend) appendBatch(b []byte, g *core.BatchInfo) []byte {
	b = append(b, '{')
	b = appendTextMember(b, "bid", f.bids.format(g.Number))
	if g.Parent != 0 {
		b = appendTextMember(b, "parent_bid", f.bids.format(g.Parent))
	}
	if g.Description != "" {
		b = appendTextMember(b, "description", g.Description)
	}
	b = appendInstantMember(b, "created_at", g.CreatedAt)
	b = appendTextMember(b, "complete_st", callbackState(g.Complete))
	b = appendTextMember(b, "success_st", callbackState(g.Success))
	b = appendIntegerMember(b, "total", int64(g.Total))
	b = appendIntegerMember(b, "pending", int64(g.Pending))
	b = appendIntegerMember(b, "failed", int64(g.Failed))
	return append(b, '}')
}

// callbackState is the reference server's code for the state of a callback.
func callbackState(st core.CallbackState) string {
	switch st {
	case core.CallbackPending:
		return ""
	case core.CallbackEnqueued:
		return "1"
	case core.CallbackDone:
		return "2"
	}
	return ""
}
