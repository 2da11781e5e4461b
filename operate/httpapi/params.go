package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"broker/frontends/shared/tracecontext"
)

// Types that inputs embed are exported, because huma sets the fields of exported types only.

// maxWait is the longest time that a request may wait for a job or an outcome.
const maxWait = 10 * time.Minute

// slack is the time for the response after the wait of a request.
const slack = 30 * time.Second

// Wait is the parameter for the time that a request may wait.
type Wait struct {
	Text string `query:"wait" doc:"longest wait: a number of seconds, or with a unit as in 500ms, 10s, 2m; at most 10m" example:"10s"`
	span time.Duration
}

// Resolve implements huma.Resolver.
func (w *Wait) Resolve(ctx huma.Context) []error {
	if w.Text == "" {
		return nil
	}
	d, err := time.ParseDuration(w.Text)
	if seconds, numErr := strconv.ParseFloat(w.Text, 64); numErr == nil && seconds >= 0 &&
		seconds <= maxWait.Seconds() {
		d, err = time.Duration(seconds*float64(time.Second)), nil
	}
	if err != nil || d < 0 || d > maxWait {
		return []error{&huma.ErrorDetail{
			Message: "expected seconds, or a number with a unit such as 10s, of at most 10m", Location: "query.wait",
			Value: w.Text,
		}}
	}
	if w.span = d; d > 0 {
		_, writer := humago.Unwrap(ctx)
		extendDeadlines(writer, d)
	}
	return nil
}

// extendDeadlines extends the deadlines of a request by its wait and slack.
func extendDeadlines(w http.ResponseWriter, by time.Duration) {
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Time{}) // a test's writer has no deadlines
	_ = c.SetWriteDeadline(deadlineIn(by + slack))
}

// JobName is the name of a job in a path.
type JobName struct {
	ID string `path:"id" doc:"id of a job, or seq:N, or a Gearman handle"`
}

// QueueName is the name of a queue in a path.
type QueueName struct {
	Name string `path:"name" doc:"name of a queue, percent-encoded"`
}

// Page selects a part of a list.
type Page struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"maximum number of rows"`
	Cursor string `query:"cursor" doc:"cursor of the previous page"`
}

// Trace is the trace context of a request. An invalid one is ignored.
type Trace struct {
	Parent string `header:"traceparent" doc:"W3C trace context, for jobs without their own" example:"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"`
	State  string `header:"tracestate" doc:"goes with traceparent"`

	context string // see core.Job.Trace
}

// Resolve implements huma.Resolver. Several tracestate headers are parts of one value.
func (t *Trace) Resolve(ctx huma.Context) []error {
	if t.Parent != "" {
		r, _ := humago.Unwrap(ctx)
		t.context = tracecontext.Join(t.Parent, strings.Join(r.Header.Values("tracestate"), ","))
	}
	return nil
}

// IfMatch is the condition that a job is unchanged.
type IfMatch struct {
	ETag string `header:"If-Match" doc:"the job's epoch, as in its ETag; the job is changed only if it still has this epoch"`

	epoch *uint32
}

// Resolve implements huma.Resolver.
func (m *IfMatch) Resolve(huma.Context) []error {
	if m.ETag == "" || m.ETag == "*" {
		return nil
	}
	n, err := strconv.ParseUint(strings.Trim(strings.TrimPrefix(m.ETag, "W/"), `"`), 10, 32)
	if err != nil {
		return []error{&huma.ErrorDetail{
			Message: "expected the epoch of a job in quotes", Location: "header.If-Match", Value: m.ETag,
		}}
	}
	epoch := uint32(n)
	m.epoch = &epoch
	return nil
}

// LongCall is part of the input of operations that may take long.
type LongCall struct{}

// Resolve implements huma.Resolver.
func (*LongCall) Resolve(ctx huma.Context) []error {
	_, w := humago.Unwrap(ctx)
	extendDeadlines(w, maxWait)
	return nil
}
