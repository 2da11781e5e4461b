package otlp

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"

	"broker/core"
	"broker/frontends/shared/tracecontext"
)

// kinds are the events at which spans begin or end.
var kinds = []core.EventKind{
	core.EventSubmitted, core.EventLeased, core.EventDone, core.EventFailed, core.EventReleased, core.EventLeaseExpired,
	core.EventDead, core.EventCancelled, core.EventExpired,
}

// spanFlags: the trace is sampled, and the parent is a span of another process.
const spanFlags = 1 | 1<<8 | 1<<9

// spanOf returns the span that ends with an event; nil if none does.
func spanOf(ev *core.Event) *span {
	c, ok := tracecontext.Parse(ev.Trace)
	if !ok || !c.Sampled {
		return nil
	}
	switch {
	case ev.Kind == core.EventSubmitted:
		return newSpan(ev, &c, "publish", "send", producerSpan, ev.At)
	case ev.Since == 0:
		return nil
	case ev.Kind == core.EventLeased:
		return newSpan(ev, &c, "wait", "", internalSpan, ev.Since)
	}
	s := newSpan(ev, &c, "process", "process", consumerSpan, ev.Since)
	outcome := strings.ReplaceAll(ev.Kind.String(), " ", "_")
	s.Attributes = append(s.Attributes, text("broker.outcome", outcome))
	if ev.Kind != core.EventDone && ev.Kind != core.EventReleased {
		class := outcome
		if ev.Kind == core.EventFailed && ev.Detail != "" {
			class = ev.Detail
		}
		s.Attributes = append(s.Attributes, text("error.type", class))
		s.Status = &status{Code: statusError, Message: valid(class)}
	}
	return s
}

// newSpan makes a span that ends with an event. operation is its name. operationType is its type in the semantic
// conventions; empty: none.
func newSpan(
	ev *core.Event, c *tracecontext.Context, operation, operationType string, kind spanKind, from core.Instant,
) *span {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	_, state := tracecontext.Split(ev.Trace)
	message := ev.ID
	if message == "" {
		message = "seq:" + strconv.FormatUint(ev.Seq, 10)
	}
	s := &span{
		TraceID: hex.EncodeToString(c.TraceID[:]), SpanID: hex.EncodeToString(id),
		ParentSpanID: hex.EncodeToString(c.SpanID[:]), TraceState: state, Flags: spanFlags,
		Name: operation + " " + valid(ev.Queue), Kind: kind,
		Start: nanos(from), End: nanos(ev.At),
		Attributes: []attribute{
			text("messaging.system", "broker"),
			text("messaging.operation.name", operation),
			text("messaging.destination.name", ev.Queue),
			text("messaging.message.id", message),
			text("broker.protocol", ev.Protocol.String()),
		},
	}
	for _, a := range []struct{ key, value string }{
		{"messaging.operation.type", operationType}, {"messaging.client.id", ev.Worker}, {"broker.job.type", ev.Type},
	} {
		if a.value != "" {
			s.Attributes = append(s.Attributes, text(a.key, a.value))
		}
	}
	return s
}

func nanos(at core.Instant) uint64 { return uint64(max(at, 0)) * 1000 }

func text(key, value string) attribute {
	return attribute{Key: key, Value: attributeValue{String: valid(value)}}
}

// valid makes s valid UTF-8 for JSON. Names from Gearman clients may be any bytes.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
