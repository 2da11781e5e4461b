package wiretap

import (
	"bytes"
	"encoding/json"
	"strings"

	"broker/migrate/wire"
)

// faktory: lines with a verb and JSON or words; replies in RESP.
type faktory struct{ textual }

var faktoryKinds = map[string]kind{"FETCH": takes, "INFO": ignored, "BATCH": ignored, "END": silent}

func (faktory) request(in []byte) (r request, n int, err error) {
	line, n := cutLine(in, "\n")
	if n == 0 {
		if len(in) > wire.MaxMessage {
			err = wire.ErrFraming
		}
		return r, 0, err
	}
	verb, arg, _ := strings.Cut(strings.TrimRight(line, "\r"), " ")
	verb = strings.ToUpper(verb)
	r = request{raw: in[:n], verb: verb, kind: faktoryKinds[verb]}
	switch verb {
	case "PUSH":
		r.creates = jids([]byte("[" + arg + "]"))
	case "PUSHB":
		r.creates = jids([]byte(arg))
	case "ACK", "FAIL":
		r.names = jids([]byte("[" + arg + "]"))
		r.ends, r.frees = verb == "ACK", verb == "FAIL"
	case "HELLO":
		r.state = verb
	}
	return r, n, nil
}

// jids returns the ids of a list of jobs; none if the text is not a list, because the server will refuse it.
func jids(list []byte) []string {
	var jobs []struct {
		JID string `json:"jid"`
	}
	if json.Unmarshal(list, &jobs) != nil {
		return nil
	}
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.JID
	}
	return ids
}

func (faktory) reply(in []byte, asked *request) (p reply, n int, err error) {
	n, err = wire.RESPLength(in, wire.MaxMessage)
	if n == 0 {
		return p, 0, err
	}
	p.raw = in[:n]
	p.push = asked == nil || bytes.HasPrefix(in, []byte("+HI "))
	p.skip = p.push // the greeting
	if asked != nil && asked.verb == "FETCH" {
		if body := wire.RESPText(p.raw); len(body) > 0 {
			p.names = jids(append(append([]byte{'['}, body...), ']'))
		} else {
			p.none = in[0] == '$'
		}
	}
	return p, n, nil
}

// The normal form of a job has no times that servers set, and its members are sorted.
func (faktory) normal(_ *request, raw string) string {
	var job map[string]any
	body := wire.RESPText([]byte(raw))
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if len(body) == 0 || d.Decode(&job) != nil {
		return raw
	}
	delete(job, "enqueued_at")
	delete(job, "created_at")
	if failure, ok := job["failure"].(map[string]any); ok {
		delete(failure, "failed_at")
		delete(failure, "next_at")
	}
	sorted, err := json.Marshal(job)
	if err != nil {
		return raw
	}
	return string(sorted)
}
