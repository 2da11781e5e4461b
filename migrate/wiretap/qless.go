package wiretap

import (
	"encoding/json"
	"regexp"
	"strings"

	"broker/migrate/wire"
)

// qless: Redis commands and replies; the operations are arguments of EVALSHA.
type qless struct{ textual }

// qlessJob are the operations whose first argument after the time is a job's id. qlessReports are the operations about
// the whole server.
var (
	qlessJob = set("complete", "fail", "heartbeat", "retry", "get", "cancel", "timeout", "priority", "depends",
		"log", "recur.get", "unrecur")
	qlessReports = set("queues", "workers", "stats", "jobs", "failed", "length", "config.get", "peek", "unfail")
	redisIgnored = set("INFO", "CLIENT", "PUBLISH", "DBSIZE", "CONFIG", "AUTH")
)

func set(words ...string) map[string]bool {
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[w] = true
	}
	return m
}

// respWords are the items of an array as text.
func respWords(raw []byte) (words []string) {
	items, _ := wire.RESPItems(raw)
	for _, item := range items {
		words = append(words, string(wire.RESPText(item)))
	}
	return words
}

func (qless) request(in []byte) (r request, n int, err error) {
	var words []string
	if in[0] == '*' {
		n, err = wire.RESPLength(in, wire.MaxMessage)
		if n == 0 {
			return r, 0, err
		}
		words = respWords(in[:n])
	} else {
		line, used := cutLine(in, "\n")
		if used == 0 {
			return r, 0, nil
		}
		n, words = used, strings.Fields(line)
	}
	r = request{raw: in[:n]}
	if len(words) == 0 {
		r.kind = silent // Redis does not reply to an empty line
		return r, n, nil
	}
	r.verb = strings.ToUpper(words[0])
	switch {
	case strings.HasSuffix(r.verb, "SUBSCRIBE"):
		r.kind = silent // not compared: messages may come in any order
	case redisIgnored[r.verb]:
		r.kind = ignored
	case r.verb == "SCRIPT" && len(words) > 2:
		r.state, r.everyone = "script "+words[2], true
	case (r.verb == "EVALSHA" || r.verb == "EVAL") && len(words) > 4:
		r.call(words[3], words[5:])
	}
	return r, n, nil
}

// call is an operation of the script. args are the arguments after the caller's time.
func (r *request) call(operation string, args []string) {
	r.verb = operation
	switch {
	case operation == "pop":
		r.kind = takes
	case qlessReports[operation]:
		r.kind = ignored
	case qlessJob[operation] && len(args) > 0:
		r.names = []string{args[0]}
		r.ends = operation == "complete" || operation == "cancel"
		r.frees = operation == "retry" || operation == "timeout"
	case (operation == "put" || operation == "requeue") && len(args) > 2: // worker, queue, jid
		r.creates = []string{args[2]}
	case operation == "recur" && len(args) > 1: // queue, jid
		r.creates = []string{args[1]}
	}
}

func (qless) reply(in []byte, asked *request) (p reply, n int, err error) {
	n, err = wire.RESPLength(in, wire.MaxMessage)
	if n == 0 {
		return p, 0, err
	}
	p.raw = in[:n]
	if in[0] == '*' {
		if words := respWords(p.raw); len(words) > 0 {
			switch words[0] {
			case "message", "pmessage", "subscribe", "psubscribe", "unsubscribe", "punsubscribe":
				p.push, p.skip = true, true
			}
		}
	}
	if asked != nil && asked.verb == "pop" && !p.push {
		var jobs []struct {
			JID string `json:"jid"`
		}
		if json.Unmarshal(wire.RESPText(p.raw), &jobs) == nil {
			for _, j := range jobs {
				p.names = append(p.names, j.JID)
			}
		}
	}
	return p, n, nil
}

// scriptPlace matches what Redis adds to the text of a script's error: the line, and the script's hash. Redis 6 has
// them in front.
var scriptPlace = regexp.MustCompile(`^-ERR (?:Error running script \(call to f_[0-9a-f]{40}\): @user_script:\d+: )?user_script:\d+: |` +
	` script: [0-9a-f]{40}, on @user_script:\d+\.\r\n$| *\r\n$`)

// The normal form of an error has no line of the script: clients load their own version of it.
func (qless) normal(_ *request, raw string) string {
	if !strings.HasPrefix(raw, "-ERR ") {
		return raw
	}
	return scriptPlace.ReplaceAllString(raw, "")
}
