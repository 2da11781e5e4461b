package wiretap

import (
	"regexp"
	"strings"

	"broker/migrate/wire"
)

// workq: lines that end with CRLF; some have a body, whose size is the last argument.
type workq struct{ textual }

func (workq) request(in []byte) (r request, n int, err error) {
	line, n := cutLine(in, "\r\n")
	if n == 0 {
		return r, 0, nil
	}
	var words []string
	for _, w := range strings.Fields(line) {
		if !strings.HasPrefix(w, "-") || !strings.Contains(w, "=") { // not a flag
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		words = []string{""}
	}
	r.verb = words[0]
	switch r.verb {
	case "add", "schedule", "run", "complete", "fail":
		size, err := sizeOf(words[len(words)-1])
		if err != nil {
			return r, 0, err
		}
		if n += size + 2; len(in) < n {
			return r, 0, nil
		}
	case "inspect":
		r.kind = ignored
		if len(words) == 3 && words[1] == "job" {
			r.kind, r.names = plain, words[2:]
		}
	}
	r.raw = in[:n]
	switch {
	case r.verb == "lease" && len(words) > 2:
		r.kind = takes
		names := strings.Join(words[:len(words)-1], " ")
		r.play = []byte(names + " 1000\r\n") // the job exists already
		r.poll = []byte(names + " 1\r\n")
	case len(words) < 2:
	case r.verb == "run":
		r.kind, r.creates = waits, words[1:2]
	case r.verb == "result":
		r.kind, r.names = waits, words[1:2]
	case r.verb == "add" || r.verb == "schedule":
		r.creates = words[1:2]
	case r.verb == "complete" || r.verb == "fail" || r.verb == "delete":
		r.names, r.ends = words[1:2], true
	}
	return r, n, nil
}

func (workq) reply(in []byte, asked *request) (p reply, n int, err error) {
	line, n := cutLine(in, "\r\n")
	if n == 0 {
		return p, 0, nil
	}
	p.none = strings.HasPrefix(line, "-TIMEOUT")
	count, many := strings.CutPrefix(line, "+OK ")
	parts := 0
	if many {
		if parts, err = sizeOf(count); err != nil {
			return p, 0, err
		}
	}
	for range parts {
		header, used := cutLine(in[n:], "\r\n")
		if used == 0 {
			return p, 0, nil
		}
		n += used
		words := strings.Fields(header)
		if len(words) < 2 {
			return p, 0, wire.ErrFraming
		}
		size, err := sizeOf(words[len(words)-1])
		if err != nil {
			return p, 0, err
		}
		if asked != nil && asked.verb == "inspect" { // the number of lines follows
			for range size {
				if _, used = cutLine(in[n:], "\r\n"); used == 0 {
					return p, 0, nil
				}
				n += used
			}
			continue
		}
		if n += size + 2; len(in) < n {
			return p, 0, nil
		}
		if asked != nil && asked.verb == "lease" {
			p.names = append(p.names, words[0])
		}
	}
	p.raw = in[:n]
	return p, n, nil
}

// instants matches times in replies.
var instants = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

func (workq) normal(_ *request, raw string) string { return instants.ReplaceAllString(raw, "TIME") }
