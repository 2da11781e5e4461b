package faktory

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"broker/core"
	"broker/frontends/shared/tracecontext"
)

// applyCustom reads the members of custom that the broker uses and ignores all others. It returns errors to the client,
// because an invalid lock or deadline must not be ignored silently.
func (f *Frontend) applyCustom(job *core.Job, u *workUnit, now core.Instant) (submission, error) {
	c := customReader{front: f, job: job, startsAt: max(now, job.ReadyAt)}
	s := scanner{data: u.custom}
	s.members(1, c.member)
	if c.err != nil {
		return submission{}, c.err
	}
	job.Trace = tracecontext.Join(c.traceparent, c.tracestate)
	if c.uniqueFor > 0 {
		job.Unique, job.UniqueStart = core.UniqueRefuse, c.untilStart
		job.UniqueKey = uniqueKey(string(u.jobtype), u.args)
		job.UniqueUntil = c.startsAt.Add(c.uniqueFor)
	}
	return submission{job: job, after: c.after, parent: c.parent}, nil
}

// customReader collects the members of custom.
type customReader struct {
	front      *Frontend
	job        *core.Job
	startsAt   core.Instant // start of all time spans: the push, or the time at which the job is due
	uniqueFor  time.Duration
	untilStart bool
	after      []string
	parent     string
	err        error // the first one

	traceparent, tracestate string
}

func (c *customReader) member(name, value []byte) bool {
	if value[0] == 'n' {
		return true
	}
	job := c.job
	switch string(name) {
	case "priority":
		if n, ok := integer(value); ok && value[0] != '"' {
			job.Priority = min(max(n, math.MinInt32), math.MaxInt32)
		}
	case "unique_for":
		c.uniqueFor = c.seconds("unique_for", value)
	case "unique_until":
		switch string(value) {
		case `"success"`:
		case `"start"`:
			c.untilStart = true
		default:
			c.fail(`invalid value for 'unique_until': %.100s: must be "success" or "start"`, value)
		}
	case "expires_in":
		if job.StartBefore == 0 {
			job.StartBefore = max(c.startsAt.Add(c.seconds("expires_in", value)), 1)
		}
	case "expires_at":
		job.StartBefore = c.timestamp("expires_at", value)
	case "track":
		if value[0] == 't' || value[0] >= '1' && value[0] <= '9' {
			job.RetainFor = trackedFor
		}
	case "bid":
		c.batch(value)
	case "tags":
		c.job.Tags = tagsOf(value)
	case "after":
		c.after = c.jids(value)
	case "parent":
		if value[0] == '"' {
			c.parent = string(decodeString(value))
		}
	case "traceparent":
		if value[0] == '"' {
			c.traceparent = string(decodeString(value))
		}
	case "tracestate":
		if value[0] == '"' {
			c.tracestate = string(decodeString(value))
		}
	}
	return c.err == nil
}

func (c *customReader) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// batch reads the bid.
func (c *customReader) batch(value []byte) {
	bid, text := value, value[0] == '"'
	if text {
		bid = decodeString(value)
	}
	number, ok := c.front.bids.parse(string(bid))
	if !ok || !text { // a bid is always a string
		c.fail("%s", withName(noSuchBatch, core.CutText(string(bid), 100)))
		return
	}
	c.job.Batch = number
}

// longestSpan replaces longer spans, which would overflow an instant.
const longestSpan = 100 * 365 * 24 * time.Hour

// seconds reads a span: a JSON number, or a string that holds one, as some clients send.
func (c *customReader) seconds(name string, value []byte) time.Duration {
	text := value
	if value[0] == '"' {
		text = decodeString(value)
	}
	n := scanner{data: text}
	seconds, err := strconv.ParseFloat(string(text), 64) // a number out of range becomes infinite
	if !n.number() || n.pos != len(text) || err != nil && !errors.Is(err, strconv.ErrRange) {
		c.fail("invalid value for '%s': %.100s: must be a number of seconds", name, value)
		return 0
	}
	return time.Duration(min(max(seconds, -longestSpan.Seconds()), longestSpan.Seconds()) * float64(time.Second))
}

// timestamp reads an instant.
func (c *customReader) timestamp(name string, value []byte) core.Instant {
	if value[0] != '"' {
		c.fail("invalid timestamp for '%s': %.100s", name, value)
		return 0
	}
	t, err := parseTimestamp(name, string(decodeString(value)))
	if err != nil {
		c.fail("%w", err)
		return 0
	}
	return max(core.InstantOf(t), 1) // zero means "not set"
}

// tagsOf reads a list of tags. It leaves out what cannot be a tag, because clients may use custom for their own data.
func tagsOf(value []byte) (tags []string) {
	if value[0] != '[' {
		return nil
	}
	s := scanner{data: value}
	s.elements(2, func(v []byte) bool {
		if v[0] == '"' {
			if tag := string(decodeString(v)); tag != "" && len(tag) <= core.MaxTagBytes && len(tags) < core.MaxTags {
				tags = append(tags, tag)
			}
		}
		return true
	})
	return tags
}

// jids reads one jid or a list of jids. It ignores other values, because clients may use custom for their own data.
func (c *customReader) jids(value []byte) []string {
	if value[0] == '"' {
		return []string{string(decodeString(value))}
	}
	if value[0] != '[' {
		return nil
	}
	var out []string
	s := scanner{data: value}
	all := s.elements(2, func(v []byte) bool {
		if v[0] != '"' {
			return false
		}
		if len(out) == core.MaxAfter {
			c.fail("custom.after must not name more than %d jobs", core.MaxAfter)
			return false
		}
		out = append(out, string(decodeString(v)))
		return true
	})
	if !all {
		return nil
	}
	return out
}
