package wiretap

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
)

// gearman: packets with a header of twelve bytes, or lines of text.
type gearman struct{}

// The packet types that matter here; others have no reply.
const (
	gearmanNoop      = 6
	gearmanCreated   = 8
	gearmanNoJob     = 10
	gearmanAssign    = 11
	gearmanStatus    = 12
	gearmanComplete  = 13
	gearmanFail      = 14
	gearmanEchoReq   = 16
	gearmanStatusRes = 20
	gearmanException = 25
	gearmanData      = 28
	gearmanWarning   = 29
	gearmanAssignUni = 31
	gearmanAssignAll = 40
)

// gearmanRequests are the packets of clients and workers.
var gearmanRequests = map[uint32]struct {
	verb string
	kind kind
	id   bool // the first field is a handle
}{
	1: {"CAN_DO", silent, false}, 2: {"CANT_DO", silent, false}, 3: {"RESET_ABILITIES", silent, false}, 4: {"PRE_SLEEP", silent, false},
	7: {"SUBMIT_JOB", submits, false}, 9: {"GRAB_JOB", takes, false}, gearmanStatus: {"WORK_STATUS", silent, true},
	gearmanComplete: {"WORK_COMPLETE", silent, true}, gearmanFail: {"WORK_FAIL", silent, true}, 15: {"GET_STATUS", plain, true},
	gearmanEchoReq: {"ECHO_REQ", plain, false}, 18: {"SUBMIT_JOB_BG", submits, false}, 21: {"SUBMIT_JOB_HIGH", submits, false},
	22: {"SET_CLIENT_ID", silent, false}, 23: {"CAN_DO_TIMEOUT", silent, false}, 24: {"ALL_YOURS", silent, false},
	gearmanException: {"WORK_EXCEPTION", silent, true}, 26: {"OPTION_REQ", plain, false}, gearmanData: {"WORK_DATA", silent, true},
	gearmanWarning: {"WORK_WARNING", silent, true}, 30: {"GRAB_JOB_UNIQ", takes, false}, 32: {"SUBMIT_JOB_HIGH_BG", submits, false},
	33: {"SUBMIT_JOB_LOW", submits, false}, 34: {"SUBMIT_JOB_LOW_BG", submits, false}, 35: {"SUBMIT_JOB_SCHED", submits, false},
	36: {"SUBMIT_JOB_EPOCH", submits, false}, 37: {"SUBMIT_REDUCE_JOB", submits, false},
	38: {"SUBMIT_REDUCE_JOB_BACKGROUND", submits, false}, 39: {"GRAB_JOB_ALL", takes, false}, 41: {"GET_STATUS_UNIQUE", plain, false},
}

const gearmanHeader = 12

// packet returns the type, the payload and the length n of the packet at the start of in. n is zero if the packet is
// incomplete.
func (gearman) packet(in []byte, magic string) (typ uint32, payload []byte, n int, err error) {
	if have := min(len(in), 4); string(in[:have]) != magic[:have] {
		return 0, nil, 0, errFraming
	}
	if len(in) < gearmanHeader {
		return 0, nil, 0, nil
	}
	size := int(binary.BigEndian.Uint32(in[8:]))
	if size > maxMessage {
		return 0, nil, 0, errFraming
	}
	if n = gearmanHeader + size; len(in) < n {
		return 0, nil, 0, nil
	}
	return binary.BigEndian.Uint32(in[4:]), in[gearmanHeader:n], n, nil
}

// firstField is the position of the payload's first field in its packet.
func firstField(payload []byte) span {
	end := bytes.IndexByte(payload, 0)
	if end < 0 {
		end = len(payload)
	}
	return span{gearmanHeader, gearmanHeader + end}
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
	typ, payload, n, err := g.packet(in, "\x00REQ")
	if n == 0 {
		return r, 0, err
	}
	known, ok := gearmanRequests[typ]
	if !ok {
		return r, 0, errFraming
	}
	r = request{raw: in[:n], verb: known.verb, kind: known.kind}
	if known.id {
		r.id = firstField(payload)
	}
	return r, n, nil
}

func (g gearman) reply(in []byte, asked *request) (p reply, n int, err error) {
	if in[0] != 0 {
		return g.textReply(in, asked)
	}
	typ, payload, n, err := g.packet(in, "\x00RES")
	if n == 0 {
		return p, 0, err
	}
	p.raw = in[:n]
	switch typ {
	case gearmanNoop: // may wake any number of workers
		p.push, p.skip = true, true
	case gearmanNoJob:
		p.none = true
	case gearmanCreated, gearmanAssign, gearmanAssignUni, gearmanAssignAll, gearmanStatusRes:
		p.id = firstField(payload)
	case gearmanStatus, gearmanComplete, gearmanFail, gearmanException, gearmanData, gearmanWarning:
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
	if len(raw) >= gearmanHeader && raw[0] == 0 {
		return raw[:8] + raw[gearmanHeader:]
	}
	return raw
}

func (gearman) barrier() (req, rep []byte) {
	const mark = "wiretap"
	packet := func(magic string, typ byte) []byte {
		return append([]byte(magic+"\x00\x00\x00"+string(rune(typ))+"\x00\x00\x00"+string(rune(len(mark)))), mark...)
	}
	return packet("\x00REQ", gearmanEchoReq), packet("\x00RES", gearmanEchoReq+1)
}

// withID returns the packet with another handle.
func (gearman) withID(r *request, id string) []byte {
	out := r.id.replaced(r.raw, id)
	binary.BigEndian.PutUint32(out[8:], uint32(len(out)-gearmanHeader)) //nolint:gosec // bounded by maxMessage
	return out
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
	if err != nil || n < 0 || n > maxMessage {
		return 0, errFraming
	}
	return n, nil
}
