package wiretap

import (
	"regexp"
	"slices"
	"strings"

	"broker/migrate/wire"
)

// beanstalk: lines that end with CRLF, some followed by a body.
type beanstalk struct{ textual }

// beanstalkKinds lists the commands that are not plain. names means that the first argument is a job's id.
var beanstalkKinds = map[string]struct {
	kind  kind
	names bool
}{
	"put": {submits, false}, "reserve": {takes, false}, "reserve-with-timeout": {takes, false}, "quit": {silent, false},
	"stats": {ignored, false}, "stats-tube": {ignored, false}, "list-tubes": {ignored, false},
	"reserve-job": {plain, true}, "delete": {plain, true}, "release": {plain, true}, "bury": {plain, true},
	"touch": {plain, true},
	"peek":  {plain, true}, "kick-job": {plain, true}, "stats-job": {plain, true},
}

func (beanstalk) request(in []byte) (r request, n int, err error) {
	line, n := cutLine(in, "\r\n")
	if n == 0 {
		return r, 0, nil
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		words = []string{""}
	}
	known := beanstalkKinds[words[0]]
	r = request{verb: words[0], kind: known.kind}
	switch {
	case words[0] == "put" && len(words) == 5:
		size, err := sizeOf(words[4])
		if err != nil {
			return r, 0, err
		}
		if n += size + 2; len(in) < n {
			return r, 0, nil
		}
	case known.kind == takes:
		r.play = []byte("reserve-with-timeout 1\r\n") // the job exists already
		r.poll = []byte("reserve-with-timeout 0\r\n")
	case known.names && len(words) > 1:
		at := strings.Index(line[len(words[0]):], words[1]) + len(words[0])
		r.id = span{at, at + len(words[1])}
	}
	switch words[0] {
	case "delete":
		r.ends = true
	case "release", "kick-job":
		r.frees = true
	case "use":
		r.state = "use"
	case "watch", "ignore":
		r.state = "tube " + strings.Join(words[1:], " ")
	}
	r.raw = in[:n]
	return r, n, nil
}

func (beanstalk) reply(in []byte, _ *request) (p reply, n int, err error) {
	line, n := cutLine(in, "\r\n")
	if n == 0 {
		return p, 0, nil
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		return p, 0, wire.ErrFraming
	}
	switch words[0] {
	case "RESERVED", "FOUND", "OK":
		size, err := sizeOf(words[len(words)-1])
		if err != nil {
			return p, 0, err
		}
		if n += size + 2; len(in) < n {
			return p, 0, nil
		}
	case "TIMED_OUT", "DEADLINE_SOON":
		p.none = true
	}
	switch words[0] {
	case "RESERVED", "FOUND", "INSERTED", "BURIED":
		if len(words) > 1 {
			p.id = span{len(words[0]) + 1, len(words[0]) + 1 + len(words[1])}
		}
	}
	p.raw = in[:n]
	return p, n, nil
}

// changing are the lines of stats-job that depend on the server and the time, and the size of the document.
var changing = regexp.MustCompile(`(?m)^(OK|id:|age:|time-left:|file:) .*$`)

func (beanstalk) normal(asked *request, raw string) string {
	switch {
	case asked == nil:
	case asked.verb == "stats-job":
		return changing.ReplaceAllString(raw, "$1")
	case asked.verb == "list-tubes-watched": // in any order
		lines := strings.SplitAfter(raw, "\n")
		slices.Sort(lines)
		return strings.Join(lines, "")
	}
	return raw
}
