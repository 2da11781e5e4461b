package workq

// skippedBody is the body after a malformed line, which the session skips.
type skippedBody struct {
	state       skipState
	size        int64 // bytes left to skip
	alternative int64 // skipWhole: a larger size that the body may have instead; below zero: none
}

// skipState says how a body is skipped.
type skipState uint8

const (
	skipNone  skipState = iota
	skipExact           // the body of a line whose sizes are correct
	skipWhole           // a body only if CRLF follows it; else the input is commands
	// a body only if the next line has this size; an argument is missing, so the number may not be the size
	skipLine
	skipStream // a body above the limit, discarded as it arrives
	skipEnd    // the CRLF after skipStream, if there is one
)

// skipBodyOf starts to skip the body after a malformed line that has enough arguments.
func (s *session) skipBodyOf(p *pipeline, cmd command) {
	r, limit := &p.request, int64(s.front.opts.MaxBodyBytes)
	switch {
	case len(r.args) < cmd.args:
	case len(r.args) > cmd.args:
		size, other := cmd.declaredBodies(r, limit)
		s.startSkip(size)
		s.skip.alternative = other
	default:
		if size, ok := parseSize(r.args[cmd.args-1]); ok {
			if s.startSkip(size); s.skip.state == skipWhole {
				s.skip.state = skipExact
			}
		}
	}
}

// startSkip starts to skip a body of the announced size.
func (s *session) startSkip(size int64) {
	switch {
	case size < 0:
	case size <= int64(s.front.opts.MaxBodyBytes):
		s.skip = skippedBody{state: skipWhole, size: size, alternative: -1}
	case size <= maxSkip:
		s.skip = skippedBody{state: skipStream, size: size}
	default:
		s.Flush()
		s.HangUp()
	}
}

// skipBody uses the part of the input that belongs to the skipped body. More is false if it needs more input.
func (s *session) skipBody(in []byte) (used int, more bool) {
	switch s.skip.state {
	case skipNone:
	case skipExact:
		end := int(s.skip.size)
		at, found := cutBodyEnd(in[min(end, len(in)):])
		if found == endShort {
			s.Needed = max(end, len(in)) + 1
			return 0, false
		}
		if s.skip = (skippedBody{}); found == endLost {
			s.Flush()
			s.HangUp()
		}
		used = end + at
	case skipWhole:
		end := int(s.skip.size)
		if len(in) < end+len(crlf) {
			s.Needed = end + len(crlf)
			return 0, false
		}
		if string(in[end:end+len(crlf)]) == crlf {
			used = end + len(crlf)
		} else if s.skip.alternative >= 0 {
			s.skip.size, s.skip.alternative = s.skip.alternative, -1
			return 0, true
		}
		s.skip = skippedBody{}
	case skipLine:
		line, n, bare := cutLine(in, min(s.scanned, len(in)))
		if n == 0 && len(in) < int(s.skip.size)+len(crlf) {
			s.scanned = len(in)
			return 0, false
		}
		if s.scanned = 0; n > 0 && !bare && len(line) == int(s.skip.size) {
			used = n
		}
		s.skip = skippedBody{}
	case skipStream:
		used = int(min(s.skip.size, int64(len(in))))
		s.skip.size -= int64(used)
		if s.skip.size > 0 {
			return used, false
		}
		s.skip.state = skipEnd
	case skipEnd:
		if len(in) == 0 || len(in) == 1 && in[0] == '\r' {
			return 0, false
		}
		if string(in[:len(crlf)]) == crlf {
			used = len(crlf)
		}
		s.skip = skippedBody{}
	}
	return used, true
}
