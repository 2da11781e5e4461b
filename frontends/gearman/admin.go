package gearman

import (
	"os"
	"strconv"
	"strings"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/gearman/packet"
)

// Lines of the text protocol. Lists and answers with a value end in LF, all others in CRLF.
const (
	lineOK        = "OK\r\n"
	lineBadCancel = "ERR UNKNOWN_ERROR\r\n"
	lineBadShow   = "ERR UNKNOWN_SHOW_ARGUMENTS\r\n"
	lineNoJob     = "ERR UNKNOWN_JOB\r\n"
	endOfList     = ".\n"
)

// textCommand is the packet type of pending text commands. It is never sent.
const textCommand = packet.NumTypes

// textCommands by their first word, in any case. A line with fewer words is an unknown command.
var textCommands = []struct {
	word  string
	words int
	needs need
	run   func(*session, []string)
}{
	{"status", 1, toRead, (*session).status},
	{"prioritystatus", 1, toRead, (*session).status},
	{"workers", 1, toRead, (*session).workers},
	{"version", 1, nothing, func(s *session, _ []string) { s.say("OK " + s.front.opts.Version + "\n") }},
	{"verbose", 1, nothing, func(s *session, _ []string) { s.say("OK " + s.front.opts.Verbosity + "\n") }},
	{"getpid", 1, nothing, func(s *session, _ []string) { s.say("OK " + strconv.Itoa(os.Getpid()) + "\n") }},
	{"show", 2, toRead, (*session).show},
	{"cancel", 3, nothing, (*session).cancel},
	{"create", 1, nothing, (*session).create},
	{"drop", 1, nothing, (*session).drop},
	{"maxqueue", 1, nothing, (*session).maxQueue},
	{"shutdown", 1, toOperate, (*session).shutdown},
}

// need is a role that a text command needs for all queues. Commands that change one queue or one job are checked by the
// broker.
type need uint8

const (
	nothing need = iota
	toRead
	toOperate
)

// metBy reports whether the client has the role.
func (n need) metBy(s *session) bool {
	switch n {
	case nothing:
		return true
	case toRead:
		return s.Allowed(access.Read)
	case toOperate:
		return s.Allowed(access.Operate)
	}
	return false
}

// runLine handles a line. Text after a NUL is ignored; words are separated by spaces; a line with a leading space is an
// unknown command. A line of an HTTP request closes the connection.
func (s *session) runLine(line []byte) {
	if frontends.IsHTTP(line) {
		s.Flush()
		s.HangUp()
		return
	}
	text := string(cutNUL(line))
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' })
	word := ""
	if len(words) > 0 && !strings.HasPrefix(text, " ") {
		word = words[0]
	}
	for _, c := range textCommands {
		if strings.EqualFold(word, c.word) && len(words) >= c.words {
			if !c.needs.metBy(s) {
				s.say(lineForbidden)
				return
			}
			c.run(s, words)
			return
		}
	}
	s.unknown(word)
}

func (s *session) unknown(word string) {
	s.say("ERR UNKNOWN_COMMAND Unknown+server+command" + word + "\r\n")
}

func (s *session) incomplete(command string) {
	s.say("ERR INVALID_ARGUMENTS An+incomplete+set+of+arguments+was+sent+to+this+command+" + command + "\r\n")
}

// awaitLine returns the tag for an operation that changes target and is answered with a line of text.
func (s *session) awaitLine(action, target string) uint64 {
	return s.expect(pending{typ: textCommand, change: &access.Change{Action: action, Target: target}})
}

// noteChange reports a change for the audit log.
func (s *session) noteChange(c *access.Change) {
	if c == nil {
		return
	}
	s.Note(s.front.opts.Audit, *c)
}

// status handles status and prioritystatus.
func (s *session) status(words []string) {
	s.list(&listing{next: (*listing).nextQueues, priorities: strings.EqualFold(words[0], "prioritystatus")})
}

func (s *session) workers([]string) {
	s.list(&listing{next: (*listing).nextWorkers, entries: s.front.workers.snapshot()})
}

func (s *session) show(words []string) {
	switch {
	case len(words) == 2 && strings.EqualFold(words[1], "jobs"):
		s.list(&listing{next: (*listing).nextJobs})
	case len(words) == 3 && strings.EqualFold(words[1], "unique") && strings.EqualFold(words[2], "jobs"):
		s.list(&listing{next: (*listing).nextUniques})
	default:
		s.say(lineBadShow)
	}
}

func (s *session) cancel(words []string) {
	if len(words) != 3 || !strings.EqualFold(words[1], "job") {
		s.say(lineBadCancel)
		return
	}
	seq, ok := s.front.opts.Handles.Parse([]byte(words[2]))
	if !ok {
		s.say(lineNoJob)
		return
	}
	s.ask(&core.Cancel{Tag: s.awaitLine("job.cancel", words[2]), Ref: core.Ref{Seq: seq}})
}

// function returns the function that create or drop names. If it is missing, the line is refused.
func (s *session) function(words []string) (*name, bool) {
	if len(words) != 3 || !strings.EqualFold(words[1], "function") {
		s.incomplete(strings.ToLower(words[0]))
		return nil, false
	}
	return s.queue(words[2])
}

// queue returns the name for a word. If a queue cannot have it, the line is refused.
func (s *session) queue(word string) (*name, bool) {
	n := s.names.of([]byte(word), &s.front.opts)
	if !n.valid() {
		s.say("ERR " + errNameSize.code + " " + strings.ReplaceAll(errNameSize.message, " ", "+") + "\r\n")
		return nil, false
	}
	return n, true
}

func (s *session) create(words []string) {
	if n, ok := s.function(words); ok {
		s.ask(&core.CreateQueue{Tag: s.awaitLine("queue.create", n.queue), Queue: n.queue})
	}
}

func (s *session) drop(words []string) {
	if n, ok := s.function(words); ok {
		s.list(&listing{next: (*listing).nextDrop, line: true, queue: n.queue})
	}
}

// maxQueue sets the limits of a function: one for all priorities, or one each for high, normal and low. An omitted
// limit means no limit. As in gearmand, the limits of an unknown function are ignored, and more than three limits close
// the connection.
func (s *session) maxQueue(words []string) {
	if len(words) < 2 {
		s.incomplete("maxqueue")
		return
	}
	if len(words) > 5 {
		s.Flush()
		s.HangUp()
		return
	}
	n, ok := s.queue(words[1])
	if !ok {
		return
	}
	var sizes [3]uint32
	for i := range sizes {
		switch {
		case len(words) == 3:
			sizes[i] = leadingNumber([]byte(words[2]))
		case len(words) > 2+i:
			sizes[i] = leadingNumber([]byte(words[2+i]))
		}
	}
	s.ask(&core.SetQueueMax{
		Tag: s.awaitLine("queue.limit", n.queue), Queue: n.queue,
		Max: core.QueueMax{High: sizes[0], Normal: sizes[1], Low: sizes[2]},
	})
}

// shutdown ends the process if the configuration allows it; otherwise it is an unknown command.
func (s *session) shutdown(words []string) {
	if !s.front.opts.AllowShutdown || s.front.opts.Shutdown == nil {
		s.unknown(words[0])
		return
	}
	s.say(lineOK)
	s.Flush()
	s.noteChange(&access.Change{Action: "shutdown"})
	s.front.opts.Shutdown(len(words) > 1 && strings.EqualFold(words[1], "graceful"))
}

// appendLine appends the answer to a text command whose operation succeeded. Packets that succeed have no answer.
func (s *session) appendLine(b []byte, p *pending) []byte {
	if p.typ != textCommand {
		return b
	}
	s.noteChange(p.change)
	return append(b, lineOK...)
}

// appendQueues appends the rows of status or prioritystatus. prioritystatus counts jobs that are not ready as normal:
// scheduled Gearman jobs always have normal priority.
func (s *session) appendQueues(b []byte, queues []core.QueueInfo, priorities bool) []byte {
	for i := range queues {
		q := &queues[i]
		waiting := q.Scheduled + q.Retrying + q.Blocked
		b = appendText(b, s.front.functionOf(q.Name))
		if priorities {
			b = appendColumn(b, q.High)
			b = appendColumn(b, q.Normal+waiting)
			b = appendColumn(b, q.Low)
		} else {
			b = appendColumn(b, q.Ready()+waiting+q.Leased)
			b = appendColumn(b, q.Leased)
		}
		b = append(appendColumn(b, q.Registrations), '\n')
	}
	return b
}

// appendColumn appends a tab and a number.
func appendColumn(b []byte, n int) []byte { return strconv.AppendInt(append(b, '\t'), int64(n), 10) }
