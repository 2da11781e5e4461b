package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"broker/operate/service"
)

// eventHeartbeat is the interval of heartbeats on a stream without events.
const eventHeartbeat = 15 * time.Second

type eventInput struct {
	Kind        []string `query:"kind,explode" doc:"of this kind; several with commas between, or several times"`
	Queue       []string `query:"queue,explode" doc:"in this queue; may be given several times"`
	QueuePrefix string   `query:"queue_prefix"`
	Type        []string `query:"type,explode" doc:"of jobs of this type; may be given several times"`
	Job         string   `query:"job" doc:"of this job"`
	LastEventID string   `header:"Last-Event-ID" doc:"id of the client's last event: the stream starts with the events after it"`
}

func (s *Server) registerEvents(api huma.API) {
	o := operation("listen-to-events", http.MethodGet, "/events", "events", "Listen to events",
		http.StatusNotFound, http.StatusTooManyRequests)
	o.Description = "Server-sent events: the name of each is its kind, its data the event in JSON. A comment is sent every 15 seconds, and an id " +
		"there and at the start, so that clients without an event can resume too. " +
		"A client that is too slow loses events: an event named dropped says how many, and with restarted that the broker does not " +
		"have those after Last-Event-ID any more. Kinds: " + strings.Join(service.EventKinds, ", ") + "."
	o.Responses = map[string]*huma.Response{"200": {
		Description: "The stream, which ends with the connection",
		Content:     map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}},
	}}
	register(s, api, o, s.listen)
}

func (s *Server) listen(ctx context.Context, in *eventInput) (*huma.StreamResponse, error) {
	l, err := serviceOf(ctx).Events(callerOf(ctx), service.EventFilter{
		Kinds: splitAll(in.Kind), Queues: in.Queue, QueuePrefix: in.QueuePrefix, Types: in.Type, Job: in.Job,
	}, in.LastEventID)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer l.Close()
		_, w := humago.Unwrap(hc)
		h := w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no") // proxies must not buffer the stream
		w.WriteHeader(http.StatusOK)
		streamEvents(hc.Context(), w, l)
	}}, nil
}

// streamEvents sends events until the client disconnects, stops reading, its credentials change, or the broker stops.
// The stream begins with an id without an event, and each heartbeat has an id. A client that reconnects sends the last
// id, so it notices a restart of the broker even if it has received no event.
func streamEvents(ctx context.Context, w http.ResponseWriter, l *service.EventListener) {
	stream := http.NewResponseController(w)
	_ = stream.SetReadDeadline(time.Time{}) // a test's writer has no deadlines
	out := fmt.Appendf(nil, ": events\nid: %s\n\n", l.Position())
	for {
		_ = stream.SetWriteDeadline(deadlineIn(writeTimeout))
		if _, err := w.Write(out); err != nil {
			return
		}
		if err := stream.Flush(); err != nil {
			return
		}
		waiting, cancel := context.WithTimeout(ctx, eventHeartbeat)
		b, err := l.Next(waiting)
		cancel()
		switch {
		case err == nil:
			out = appendEvents(out[:0], &b)
		case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			out = fmt.Appendf(out[:0], ": heartbeat\nid: %s\n\n", l.Position())
		default:
			return
		}
	}
}

// appendEvents writes a batch as server-sent events.
func appendEvents(out []byte, b *service.EventBatch) []byte {
	if b.Dropped > 0 || b.Restarted {
		out = fmt.Appendf(out, "event: dropped\ndata: {\"dropped\":%d,\"restarted\":%t}\n\n", b.Dropped, b.Restarted)
	}
	for _, e := range b.Events {
		out = fmt.Appendf(out, "id: %s\nevent: %s\ndata: ", e.Event().ID, e.Event().Kind)
		out = append(append(out, e.JSON()...), "\n\n"...)
	}
	return out
}
