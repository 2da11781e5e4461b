package wiretap

import (
	"bytes"
	"strconv"
	"strings"

	"broker/frontends/gearman/packet"
	"broker/migrate/wire"
)

// gearman: packets with a header of twelve bytes, or lines of text.
type gearman struct{}

// gearmanRequests are the packets of clients and workers.
var gearmanRequests = map[packet.Type]struct {
	kind kind
	id   bool // the first field is a handle
}{
	packet.CanDo: {silent, false}, packet.CantDo: {silent, false}, packet.ResetAbilities: {silent, false},
	packet.PreSleep: {silent, false}, packet.SubmitJob: {submits, false}, packet.GrabJob: {takes, false},
	packet.WorkStatus: {silent, true}, packet.WorkComplete: {silent, true}, packet.WorkFail: {silent, true},
	packet.GetStatus: {plain, true}, packet.EchoReq: {plain, false}, packet.SubmitJobBg: {submits, false},
	packet.SubmitJobHigh: {submits, false}, packet.SetClientID: {silent, false}, packet.CanDoTimeout: {silent, false},
	packet.AllYours: {silent, false}, packet.WorkException: {silent, true}, packet.OptionReq: {plain, false},
	packet.WorkData: {silent, true}, packet.WorkWarning: {silent, true}, packet.GrabJobUniq: {takes, false},
	packet.SubmitJobHighBg: {submits, false}, packet.SubmitJobLow: {submits, false},
	packet.SubmitJobLowBg: {submits, false},
	packet.SubmitJobSched: {submits, false}, packet.SubmitJobEpoch: {submits, false},
	packet.SubmitReduceJob:   {submits, false},
	packet.SubmitReduceJobBg: {submits, false}, packet.GrabJobAll: {takes, false},
	packet.GetStatusUnique: {plain, false},
}

// cut returns the type, the payload and the length n of the packet at the start of in. n is zero if the packet is
// incomplete.
func (gearman) cut(in []byte, magic string) (typ packet.Type, payload []byte, n int, err error) {
	if have := min(len(in), 4); string(in[:have]) != magic[:have] {
		return 0, nil, 0, wire.ErrFraming
	}
	if len(in) < packet.HeaderBytes {
		return 0, nil, 0, nil
	}
	typ, size, _ := packet.Header(in, magic)
	if size > wire.MaxMessage {
		return 0, nil, 0, wire.ErrFraming
	}
	if n = packet.HeaderBytes + int(size); len(in) < n {
		return 0, nil, 0, nil
	}
	return typ, in[packet.HeaderBytes:n], n, nil
}

// firstField is the position of the payload's first field in its packet.
func firstField(payload []byte) span {
	end := bytes.IndexByte(payload, 0)
	if end < 0 {
		end = len(payload)
	}
	return span{packet.HeaderBytes, packet.HeaderBytes + end}
}

func (g gearman) request(in []byte) (r request, n int, err error) {
	if in[0] != 0 {
		line, n := cutLine(in, "\n")
		if n == 0 {
			return r, 0, nil
		}
		r = request{raw: in[:n], verb: "text " + firstWord(strings.TrimRight(line, "\r")), kind: ignored}
		switch r.verb {
		case "text maxqueue", "text create", "text drop":
			r.kind = plain
		}
		return r, n, nil
	}
	typ, payload, n, err := g.cut(in, packet.RequestMagic)
	if n == 0 {
		return r, 0, err
	}
	known, ok := gearmanRequests[typ]
	if !ok {
		return r, 0, wire.ErrFraming
	}
	r = request{raw: in[:n], verb: typ.Layout().Name, kind: known.kind}
	if known.id {
		r.id = firstField(payload)
	}
	switch typ { //nolint:exhaustive // the others need nothing more
	case packet.GrabJob, packet.GrabJobUniq, packet.GrabJobAll:
		r.poll = r.raw
	case packet.PreSleep:
		r.sleeps = true
	case packet.WorkComplete, packet.WorkFail:
		r.ends = true
	case packet.CanDo, packet.CanDoTimeout, packet.CantDo:
		r.state = "function " + firstField(payload).of(r.raw)
	case packet.ResetAbilities:
		r.state = "function "
	case packet.SetClientID:
		r.state = "client"
	case packet.OptionReq:
		r.state = "option " + string(payload)
	}
	return r, n, nil
}

func (g gearman) reply(in []byte, asked *request) (p reply, n int, err error) {
	if in[0] != 0 {
		return g.textReply(in, asked)
	}
	typ, payload, n, err := g.cut(in, packet.AnswerMagic)
	if n == 0 {
		return p, 0, err
	}
	p.raw = in[:n]
	switch typ { //nolint:exhaustive // the others name no job
	case packet.Noop: // may wake any number of workers
		p.push, p.skip = true, true
	case packet.NoJob:
		p.none = true
	case packet.JobCreated, packet.JobAssign, packet.JobAssignUniq, packet.JobAssignAll, packet.StatusRes:
		p.id = firstField(payload)
	case packet.WorkStatus, packet.WorkComplete, packet.WorkFail, packet.WorkException, packet.WorkData,
		packet.WorkWarning:
		p.push, p.id = true, firstField(payload)
		p.key = p.id.of(p.raw)
	}
	return p, n, nil
}

// textReply is a line, or lines up to one with a dot.
func (gearman) textReply(in []byte, asked *request) (p reply, n int, err error) {
	many := false
	if asked != nil && !bytes.HasPrefix(in, []byte("ERR")) {
		switch asked.verb {
		case "text status", "text workers", "text prioritystatus", "text show":
			many = true
		}
	}
	for {
		line, used := cutLine(in[n:], "\n")
		if used == 0 {
			return p, 0, nil
		}
		n += used
		if !many || strings.TrimRight(line, "\r") == "." {
			return reply{raw: in[:n]}, n, nil
		}
	}
}

// The normal form has no packet size, because it depends on the length of the handle.
func (gearman) normal(_ *request, raw string) string {
	if len(raw) >= packet.HeaderBytes && raw[0] == 0 {
		return raw[:8] + raw[packet.HeaderBytes:]
	}
	return raw
}

func (gearman) barrier() (req, rep []byte) {
	const mark = "wiretap"
	return packet.Append(nil, packet.RequestMagic, packet.EchoReq, mark),
		packet.Append(nil, packet.AnswerMagic, packet.EchoRes, mark)
}

// withID returns the packet with another handle.
func (gearman) withID(r *request, id string) []byte {
	return packet.End(r.id.replaced(r.raw, id), 0)
}

// cutLine returns the first line of in without its end, and its length with the end; zero if the line is incomplete.
func cutLine(in []byte, end string) (line string, n int) {
	at := bytes.Index(in, []byte(end))
	if at < 0 {
		return "", 0
	}
	return string(in[:at]), at + len(end)
}

func firstWord(line string) string {
	word, _, _ := strings.Cut(line, " ")
	return word
}

// sizeOf reads the size of a body.
func sizeOf(word string) (int, error) {
	n, err := strconv.Atoi(word)
	if err != nil || n < 0 || n > wire.MaxMessage {
		return 0, wire.ErrFraming
	}
	return n, nil
}
