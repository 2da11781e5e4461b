package workq

import (
	"bytes"
	"time"

	"broker/core"
	"broker/frontends"
)

// command describes the syntax of a command and its handler.
type command struct {
	args       int    // tokens after the command word, without flags
	more       bool   // args is a minimum
	body       bool   // the last argument is the size of a body
	badSize    string // the reply if the size is invalid
	flags      int    // maximum number of flags, known or unknown
	extensions bool   // extensionFlags are allowed and do not count
	run        func(*session, *pipeline, *request)
}

// commands by their first word.
var commands = map[string]command{
	"add":      {args: 5, body: true, badSize: badPayload, flags: 3, extensions: true, run: (*session).add},
	"schedule": {args: 6, body: true, badSize: badPayload, flags: 3, extensions: true, run: (*session).schedule},
	"run":      {args: 5, body: true, badSize: badPayload, flags: 1, extensions: true, run: (*session).run},
	"result":   {args: 2, run: (*session).result},
	"lease":    {args: 2, more: true, run: (*session).lease},
	"complete": {args: 2, body: true, badSize: badPayload, run: (*session).complete},
	"fail":     {args: 2, body: true, badSize: badResult, run: (*session).fail},
	"delete":   {args: 1, run: (*session).remove},
	"inspect":  {args: 1, more: true, flags: anyFlags, run: (*session).inspect},
}

// anyFlags allows any number of flags: the handler checks the number.
const anyFlags = 1 << 30

// inspections are the forms of "inspect", by object. Their arguments are the tokens after the object.
var inspections = map[string]command{
	"job":            {args: 1, run: (*session).inspectJob},
	"jobs":           {args: 3, run: (*session).inspectJobs},
	"scheduled-jobs": {args: 3, run: (*session).inspectScheduled},
	"queue":          {args: 1, run: (*session).inspectQueue},
	"queues":         {args: 2, run: (*session).inspectQueues},
	"server":         {args: 0, run: (*session).inspectServer},
}

// fits reports whether a line without a body has the right number of arguments and flags.
func (c *command) fits(r *request) bool { return c.argsFit(r) && c.standardFlags(r) <= c.flags }

// argsFit reports whether the number of arguments is right.
func (c *command) argsFit(r *request) bool {
	return len(r.args) == c.args || c.more && len(r.args) > c.args
}

// standardFlags is the number of flags that count towards the limit.
func (c *command) standardFlags(r *request) int {
	n := len(r.flags)
	if !c.extensions {
		return n
	}
	for _, f := range r.flags {
		if extensionFlags[string(f.key)] {
			n--
		}
	}
	return n
}

// extensionFlags are the flags that this broker adds to the protocol.
var extensionFlags = map[string]bool{"unique": true, "type": true, "after": true, "parent": true}

// lineError is the answer to a malformed line, empty for a correct one.
func (c *command) lineError(r *request) string {
	switch {
	case r.badFlags:
		return badFlags
	case !c.argsFit(r):
		return badArgs
	}
	return ""
}

// declaredBodies returns the possible sizes of the body after a line with too many arguments, the smaller one first; a
// negative size is none. If a name contains a space, the size is the last argument. If there are arguments behind the
// size, it is in its usual place, as the numbers before it are.
func (c *command) declaredBodies(r *request, limit int64) (size, other int64) {
	size, other = -1, -1
	if n, ok := parseSize(r.args[len(r.args)-1]); ok {
		size = n
	}
	_, numbers := parseSize(r.args[min(2, c.args-1)])
	if n, ok := parseSize(r.args[c.args-1]); ok && numbers && n >= 0 && n <= limit {
		other = n
	}
	switch {
	case size < 0 || size > limit && other >= 0:
		return other, -1
	case size > limit || other < 0 || other == size:
		return size, -1
	}
	return min(size, other), max(size, other)
}

// guessedBody returns the likely size of the body after a line that lacks an argument: the last argument, or a negative
// number if that is not a size. The missing argument may be the size itself. Then there is no body, so the session must
// not wait for one.
func (c *command) guessedBody(r *request) int64 {
	if len(r.args) == 0 || len(r.args) >= c.args {
		return -1
	}
	if size, ok := parseSize(r.args[len(r.args)-1]); ok && size <= defaultBodyBytes {
		return size
	}
	return -1
}

// add handles "add id name ttr ttl size".
func (s *session) add(p *pipeline, r *request) {
	s.submit(p, r, submission{ttl: r.args[3]})
}

// schedule handles "schedule id name ttr ttl time size".
func (s *session) schedule(p *pipeline, r *request) {
	s.submit(p, r, submission{ttl: r.args[3], time: r.args[4]})
}

// run handles "run id name ttr wait size".
func (s *session) run(p *pipeline, r *request) {
	s.submit(p, r, submission{wait: r.args[3]})
}

// submit submits a job. An invalid command gets an error reply.
func (s *session) submit(p *pipeline, r *request, what submission) {
	job, until, wrong := s.newJob(r, what)
	if wrong == "" && len(r.flags) > 0 {
		wrong = s.setExtensions(r, job)
	}
	if wrong != "" {
		p.say(wrong)
		return
	}
	s.setQueue(job, r.args[1])
	op := p.Submits.Next()
	op.Job = job
	if what.wait == nil {
		op.Tag = p.expect(pending{answer: answerDone})
	} else {
		op.Watch, op.Deadline = core.WatchRun, until
		op.Tag = p.expect(pending{answer: answerOutcome, id: job.ID, mayWait: true})
	}
	p.Ask(op)
}

// job returns the job that the first argument names. If the argument is not an id, it answers the command with an error
// and good is false.
func (p *pipeline) job(r *request) (ref core.Ref, good bool) {
	id, good := parseID(r.args[0])
	if !good || !id.valid {
		p.say(badID)
		return core.Ref{}, false
	}
	return core.Ref{ID: id.text}, true
}

// result handles "result id wait".
func (s *session) result(p *pipeline, r *request) {
	ref, good := p.job(r)
	if !good {
		return
	}
	wait, good := parseWait(r.args[1])
	if !good {
		p.say(badWait)
		return
	}
	tag := p.expect(pending{answer: answerOutcome, id: ref.ID, mayWait: wait > 0, large: true, isResult: true})
	p.Ask(&core.Await{Tag: tag, Ref: ref, Deadline: s.deadline(wait)})
}

// lease handles "lease name… wait".
func (s *session) lease(p *pipeline, r *request) {
	last := len(r.args) - 1
	wait, good := parseWait(r.args[last])
	if !good {
		p.say(badWait)
		return
	}
	names := r.args[:last]
	for _, name := range names {
		if !validName(name) {
			p.say(badName)
			return
		}
	}
	queues := s.leaseQueues(names)
	if len(queues) > maxNames {
		p.say(badArgs)
		return
	}
	op := p.Leases.Next()
	*op = core.Lease{
		Tag:    p.expect(pending{answer: answerLease, mayWait: true, large: true, isLease: true}),
		Queues: queues, KeepQueues: true, Pick: core.PickAtRandom, Holder: core.HeldByNobody,
		Deadline: s.deadline(wait),
		Late:     !s.HalfClosed,
	}
	p.Ask(op)
}

// complete handles "complete id size".
func (s *session) complete(p *pipeline, r *request) {
	ref, good := p.job(r)
	if !good {
		return
	}
	op := p.Completes.Next()
	*op = core.Complete{
		Tag: p.expect(pending{answer: answerDone}), Ref: ref, Authority: core.ByAnyone, Result: bytes.Clone(r.body),
	}
	p.Ask(op)
}

// fail handles "fail id size".
func (s *session) fail(p *pipeline, r *request) {
	ref, good := p.job(r)
	if !good {
		return
	}
	op := p.Fails.Next()
	*op = core.Fail{
		Tag: p.expect(pending{answer: answerDone}), Ref: ref, Authority: core.ByAnyone, Failure: failure(r.body),
	}
	p.Ask(op)
}

// remove handles "delete id".
func (s *session) remove(p *pipeline, r *request) {
	ref, good := p.job(r)
	if !good {
		return
	}
	p.Ask(&core.Cancel{Tag: p.expect(pending{answer: answerDone, id: ref.ID, isDelete: true}), Ref: ref})
}

// maxWait is the longest wait timeout.
const maxWait = 24 * time.Hour

// parseWait parses a wait timeout in milliseconds.
func parseWait(b []byte) (time.Duration, bool) {
	n, good := frontends.ParseUint(b, uint64(maxWait/time.Millisecond))
	return time.Duration(n) * time.Millisecond, good
}

// deadline is the end of a wait that starts now; zero for no wait.
func (s *session) deadline(wait time.Duration) core.Instant {
	if wait == 0 {
		return 0
	}
	return s.front.broker.Now().Add(wait)
}
