package faktory

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"time"

	"broker/core"
)

// Durations of reservations, and the time for which the outcome of a tracked job is kept.
const (
	defaultReserve = 30 * time.Minute
	minReserve     = time.Minute
	maxReserve     = 24 * time.Hour
	trackedFor     = 30 * time.Minute
)

// Bounds of jid and jobtype, in bytes.
const (
	minJID     = 8
	maxJobtype = 1024
)

// submission is a job to be submitted. Its links are still jids.
type submission struct {
	job    *core.Job
	after  []string
	parent string
}

// names holds the last queue and jobtype of a connection. Most clients repeat them, so that jobs share the strings.
type names struct{ queue, jobtype string }

// intern returns name as a string, which is *last if they are equal.
func intern(last *string, name []byte) string {
	if len(name) > maxJobtype {
		return string(name) // it will be refused
	}
	if string(name) != *last {
		*last = string(name)
	}
	return *last
}

// newPushedJob checks a work unit, in the same order as the reference server, and makes a job from it. The error is
// sent to the client. The job shares no memory with the request line.
func (f *Frontend) newPushedJob(u *workUnit, n *names, now core.Instant) (submission, error) {
	if len(u.jid) < minJID || len(u.jid) > core.MaxIDBytes {
		return submission{}, errors.New("jobs must have a reasonable jid parameter")
	}
	return f.newJob(u, n, now)
}

// newJob is newPushedJob for jobs that need no jid: callbacks of batches, and jobs that the broker creates itself.
func (f *Frontend) newJob(u *workUnit, n *names, now core.Instant) (submission, error) {
	if err := u.check(); err != nil {
		return submission{}, err
	}
	readyAt, err := u.readyAt(now)
	if err != nil {
		return submission{}, err
	}
	queue := "default"
	if len(u.queue) > 0 {
		queue = intern(&n.queue, u.queue)
	}
	if err := f.checkQueue(queue); err != nil {
		return submission{}, err
	}
	job := &core.Job{
		ID: string(u.jid), Type: intern(&n.jobtype, u.jobtype), Format: core.Args, Origin: core.Faktory,
		ReadyAt: readyAt, LeaseFor: u.leaseFor(),
		Backoff: core.BackoffFaktory, LeaseEnd: core.LeaseEndFail, DeadFor: core.DeadFor,
	}
	job.MaxFails, job.Exhausted = u.failPolicy()
	job.Own = u.own()
	if u.failure != nil {
		var f pushedFailure
		f.read(u.failure) // checked when the line was parsed
		job.PriorFails = uint32(max(f.retryCount, 0)) + 1
		job.Failure = f.failure()
	}
	// One allocation for both, since they have the same lifetime.
	buf := make([]byte, 0, len(u.args)+u.attributesSize())
	buf = append(buf, u.args...)
	buf = u.appendAttributes(buf)
	job.Body = buf[:len(u.args):len(u.args)]
	if len(buf) > len(u.args) {
		job.Attributes = buf[len(u.args):]
	}
	job.Queue, job.Type = f.route(queue, job.Type)
	if u.custom == nil {
		return submission{job: job}, nil
	}
	return f.applyCustom(job, u, now)
}

// check validates the members that need no conversion.
func (u *workUnit) check() error {
	switch {
	case len(u.jobtype) == 0:
		return errors.New("jobs must have a jobtype parameter")
	case u.args == nil:
		return errors.New("jobs must have an args parameter")
	case len(u.jobtype) > maxJobtype:
		return fmt.Errorf("jobtype must not be longer than %d bytes", maxJobtype)
	case u.reserveFor > int64(maxReserve/time.Second):
		return errors.New("jobs cannot be reserved for more than one day")
	}
	return nil
}

// readyAt is when the job is due; zero: at once.
func (u *workUnit) readyAt(now core.Instant) (core.Instant, error) {
	if len(u.at) == 0 {
		return 0, nil
	}
	t, err := parseTimestamp("at", string(u.at))
	if err != nil || core.InstantOf(t) <= now {
		return 0, err
	}
	return core.InstantOf(t), nil
}

// maxTimestamp is longer than any RFC 3339 timestamp, in bytes. Longer texts are cut in errors.
const maxTimestamp = 64

// parseTimestamp reads an RFC 3339 timestamp. The error is sent to the client.
func parseTimestamp(name, text string) (time.Time, error) {
	if len(text) > maxTimestamp {
		return time.Time{}, fmt.Errorf("invalid timestamp for '%s': %.64q…", name, text)
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, fmt.Errorf("invalid timestamp for '%s': %q: %w", name, text, err)
	}
	return t, nil
}

// leaseFor is the duration of a reservation. Short and missing values follow the rules of the reference server. check
// has already refused long ones.
func (u *workUnit) leaseFor() time.Duration {
	if u.reserveFor == 0 {
		return defaultReserve
	}
	return time.Duration(max(u.reserveFor, int64(minReserve/time.Second))) * time.Second
}

// failPolicy returns the number of failures after which the job ends, and how it ends.
func (u *workUnit) failPolicy() (uint32, core.Exhausted) {
	switch {
	case u.retry == 0:
		return 1, core.ExhaustedFinish
	case u.retry < 0:
		return 1, core.ExhaustedBury
	}
	return uint32(min(u.retry, math.MaxUint32-1)) + 1, core.ExhaustedBury
}

// own returns the policy fields that the client has set. retry 0 or -1 also sets the exhausted policy: it decides
// whether the job goes to the dead set.
func (u *workUnit) own() (own core.PolicyFields) {
	if u.reserveFor != 0 {
		own |= core.PolicyLeaseFor
	}
	if u.retrySet {
		own |= core.PolicyMaxFails
		if u.retry <= 0 {
			own |= core.PolicyExhausted
		}
	}
	return own
}

// checkQueue validates a queue's name. The error is sent to the client.
func (f *Frontend) checkQueue(name string) error {
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-' {
			continue
		}
		return fmt.Errorf(`cannot get %.1024q queue: queue names must match \A[a-zA-Z0-9._-]+\z`, name)
	}
	if len(f.opts.Namespace)+len(name) > core.MaxQueueName {
		return fmt.Errorf("cannot get %q queue: queue names must not be longer than %d bytes",
			name[:32], core.MaxQueueName-len(f.opts.Namespace))
	}
	return nil
}

// route maps the client's queue and type to the names in the core. A queue that a route changes gets no namespace.
func (f *Frontend) route(queue, jobtype string) (string, string) {
	if f.opts.Route != nil {
		if to, typ := f.opts.Route(queue, jobtype); to != queue {
			return to, typ
		} else {
			jobtype = typ
		}
	}
	return f.opts.Namespace + queue, jobtype
}

// attributesSize estimates the size of the output of appendAttributes. For most jobs it is a close upper bound.
func (u *workUnit) attributesSize() int {
	n := len(u.custom) + len(u.failure) + len(u.createdAt) + len(u.at)
	for _, m := range u.unknown {
		n += len(m.name) + len(m.value) + 4
	}
	if n == 0 && !u.retrySet && u.reserveFor == 0 && u.backtrace == 0 {
		return 0
	}
	return n + 64
}

// uniqueKeyPrefix starts all unique keys of this front-end, so that they differ from those of other front-ends.
const uniqueKeyPrefix = string(rune(core.Faktory))

// uniqueKey is a hash of the type and the arguments without white space.
func uniqueKey(jobtype string, args []byte) string {
	text := make([]byte, 0, len(jobtype)+1+len(args))
	text = append(append(text, jobtype...), 0)
	sum := sha256.Sum256(appendCompact(text, args))
	return uniqueKeyPrefix + string(sum[:16])
}
