package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"broker/core"
	"broker/core/notify"
)

const (
	eventBuffer = 20_000 // events that wait in the core
	maxBatch    = 1000   // spans in one request
	gatherFor   = 250 * time.Millisecond
	postTimeout = 10 * time.Second
	lastTimeout = 500 * time.Millisecond // timeout of the last request
	firstRetry  = time.Second            // doubled up to maxRetry
	maxRetry    = 30 * time.Second
	maxAnswer   = 64 << 10 // maximum of the collector's answer, in bytes
)

// Options of an Exporter.
type Options struct {
	Broker   core.Broker
	Endpoint string // URL of the collector, to which /v1/traces is added
	Service  string // service.name of the spans
	Version  string // service.version

	// Failed is called with an error when spans cannot be sent, and with nil when sending works again.
	Failed func(error)
}

// Exporter sends spans until it is closed.
type Exporter struct {
	o        Options
	url      string
	client   core.ClientID
	wake     notify.Signal
	http     http.Client
	resource resource
	end      context.CancelFunc
	done     chan struct{} // closed when run has returned

	sent, dropped atomic.Uint64

	// Only run uses the fields below.
	waiting []core.Reply // events whose commit is not durable yet
	failing bool
}

// Open starts an Exporter. The caller must close it.
func Open(o Options) (*Exporter, error) {
	e := &Exporter{
		o: o, url: strings.TrimSuffix(o.Endpoint, "/") + "/v1/traces", wake: notify.NewSignal(),
		done: make(chan struct{}),
		resource: resource{Attributes: []attribute{
			text("service.name", o.Service), text("service.version", o.Version),
		}},
	}
	e.client = o.Broker.Open(core.ClientOptions{Protocol: core.Internal, Wake: e.wake.Set, Name: "tracing"})
	for _, r := range o.Broker.Do(e.client, []core.Op{&core.Subscribe{Kinds: kinds, Traced: true, Buffer: eventBuffer}},
		nil) {
		if r.Kind == core.Failed {
			o.Broker.Close(e.client)
			return nil, fmt.Errorf("subscribe to traced jobs: %w", r.Err)
		}
	}
	var ctx context.Context
	ctx, e.end = context.WithCancel(context.Background())
	go e.run(ctx) // ends with Close, which waits for it
	return e, nil
}

// Close sends the remaining durable events without a retry, and ends the Exporter. The broker must still be open.
func (e *Exporter) Close() {
	e.end()
	<-e.done
	e.o.Broker.Close(e.client)
	e.http.CloseIdleConnections()
}

// Counts returns how many spans were sent, and how many events or spans were dropped.
func (e *Exporter) Counts() (sent, dropped uint64) { return e.sent.Load(), e.dropped.Load() }

// run sends spans as events arrive.
func (e *Exporter) run(ctx context.Context) {
	defer close(e.done)
	for closing := false; !closing; {
		select {
		case <-e.wake:
			pause(ctx, gatherFor)
		case <-ctx.Done():
		}
		closing = ctx.Err() != nil // set before the last fetch of events
		e.send(ctx, e.fetch())
	}
}

// fetch returns the spans of durable events. An event that is not durable may still be lost.
func (e *Exporter) fetch() (spans []*span) {
	e.waiting = e.o.Broker.Do(e.client, nil, e.waiting)
	committed, n := e.o.Broker.Committed(), 0
	for ; n < len(e.waiting) && e.waiting[n].Commit <= committed; n++ {
		r := &e.waiting[n]
		if r.Kind != core.EventReply {
			continue
		}
		e.dropped.Add(r.Event.Dropped)
		if s := spanOf(&r.Event); s != nil {
			spans = append(spans, s)
		}
	}
	rest := copy(e.waiting, e.waiting[n:])
	clear(e.waiting[rest:])
	e.waiting = e.waiting[:rest]
	return spans
}

// send sends spans in batches.
func (e *Exporter) send(ctx context.Context, spans []*span) {
	for len(spans) > 0 {
		batch := spans[:min(len(spans), maxBatch)]
		spans = spans[len(batch):]
		err := e.deliver(ctx, batch)
		if err != nil {
			e.dropped.Add(uint64(len(batch)))
		} else {
			e.sent.Add(uint64(len(batch)))
		}
		e.report(err)
	}
}

// report calls Failed when sending begins to fail, and when it works again.
func (e *Exporter) report(err error) {
	if failing := err != nil; failing != e.failing {
		e.failing = failing
		e.o.Failed(err)
	}
}

// deliver sends one batch. It retries while the collector is down; once the exporter is being closed, only one more
// time. New events wait in the core.
func (e *Exporter) deliver(ctx context.Context, spans []*span) error {
	body, err := json.Marshal(tracesData{ResourceSpans: []resourceSpans{{
		Resource:   e.resource,
		ScopeSpans: []scopeSpans{{Scope: scope{Name: "broker", Version: e.o.Version}, Spans: spans}},
	}}})
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	for retry := firstRetry; ; retry = min(2*retry, maxRetry) {
		last := ctx.Err() != nil
		err := e.post(ctx, body)
		var refused *refusedError
		if err == nil || errors.As(err, &refused) && !refused.temporary() || last {
			return err
		}
		if ctx.Err() == nil {
			e.report(err)
			pause(ctx, retry)
		}
	}
}

// post makes one request, with a short timeout when the exporter is being closed.
func (e *Exporter) post(ctx context.Context, body []byte) error {
	timeout := postTimeout
	if ctx.Err() != nil {
		ctx, timeout = context.Background(), lastTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("send spans: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := e.http.Do(r)
	if err != nil {
		return fmt.Errorf("send spans: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()                         // the body has been read as far as needed
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) // allows reuse of the connection
	if resp.StatusCode/100 != 2 {
		return &refusedError{status: resp.StatusCode}
	}
	return nil
}

// refusedError is an error response of the collector.
type refusedError struct{ status int }

func (e *refusedError) Error() string {
	return fmt.Sprintf("send spans: the collector answers %d %s", e.status, http.StatusText(e.status))
}

// temporary reports whether OTLP requires a retry.
func (e *refusedError) temporary() bool {
	switch e.status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
