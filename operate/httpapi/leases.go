package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"broker/core"
	"broker/operate/service"
)

// LeaseToken is the token of a lease in a path.
type LeaseToken struct {
	Token string `path:"token" doc:"the lease's token"`
}

// WorkerVersion is the header with the version of a worker's program.
type WorkerVersion struct {
	Version string `header:"Broker-Worker-Version" maxLength:"64" doc:"version of the worker's program, kept with each attempt" example:"4.2"`
}

type leaseInput struct {
	QueueName
	WorkerVersion
	Wait
	Body *LeaseBody
}

// leaseAnyInput is leaseInput for several queues.
type leaseAnyInput struct {
	WorkerVersion

	Queue []string `query:"queue,explode" required:"true" minItems:"1" maxItems:"1000" doc:"may be repeated: leases from the first of these queues that has a job"`
	Wait
	Body *LeaseBody
}

// LeaseBody is the body of a request for leases.
type LeaseBody struct {
	Worker    string  `json:"worker,omitempty" maxLength:"255" doc:"the worker's own name; default: the name of its principal"`
	LeaseForS float64 `json:"lease_for_s,omitempty" minimum:"0" maximum:"31536000" doc:"time to finish; default: of the job, else default_lease"`
}

// leaseOutput also has the job's trace context as headers, for instrumented HTTP clients.
type leaseOutput struct {
	Status      int
	Traceparent string `header:"traceparent" doc:"W3C trace context of the job's submission"`
	Tracestate  string `header:"tracestate"`
	Body        *service.Lease
}

type completeInput struct {
	LeaseToken
	Body *CompleteBody
}

// CompleteBody is a worker's report about a completed job.
type CompleteBody struct {
	Result json.RawMessage `json:"result,omitempty" doc:"the job's result: a string counts as its text, any other value as its JSON"`

	ResultBase64 []byte `json:"result_base64,omitempty" doc:"in place of result: bytes"`
}

func (b *CompleteBody) result() service.Result {
	return service.Result{JSON: b.Result, Bytes: b.ResultBase64}
}

type failInput struct {
	LeaseToken
	Body *FailBody
}

// FailBody is a worker's report about a failed job.
type FailBody struct {
	ErrorClass string    `json:"error_class,omitempty" example:"TimeoutError"`
	Message    string    `json:"message,omitempty" example:"no answer within 5 s"`
	Backtrace  []string  `json:"backtrace,omitempty" maxItems:"1000"`
	RetryInS   float64   `json:"retry_in_s,omitempty" minimum:"0" maximum:"31536000" doc:"when the next attempt is due; default: by the job's back-off"`
	RetryAt    time.Time `json:"retry_at,omitzero" doc:"in place of retry_in_s"`
	Final      bool      `json:"final,omitempty" doc:"no further attempt, even if the job has retries left"`
}

// options converts the failure for the service; now is the time of the report.
func (b *FailBody) options(now core.Instant) service.FailOptions {
	o := service.FailOptions{
		Class: b.ErrorClass, Message: b.Message, Backtrace: b.Backtrace, RetryAt: core.InstantOf(b.RetryAt),
		Final: b.Final,
	}
	if b.RetryInS > 0 {
		o.RetryAt = now.Add(seconds(b.RetryInS))
	}
	return o
}

type progressInput struct {
	LeaseToken
	Body *struct {
		Numerator   uint32   `json:"numerator,omitempty" maximum:"4294967295" doc:"done part of denominator"`
		Denominator uint32   `json:"denominator,omitempty" maximum:"4294967295"`
		Percent     *float64 `json:"percent,omitempty" minimum:"0" maximum:"100" doc:"in place of numerator and denominator"`
		Text        string   `json:"text,omitempty" maxLength:"4096"`
		ExtendS     float64  `json:"extend_s,omitempty" minimum:"0" maximum:"31536000" doc:"the lease lasts at least this long from now; default: its original duration"`
	}
}

type heartbeatInput struct {
	LeaseToken
	Body *HeartbeatBody
}

// HeartbeatBody is the body of a heartbeat: the new length of the lease.
type HeartbeatBody struct {
	ExtendS float64 `json:"extend_s,omitempty" minimum:"0" maximum:"31536000" doc:"the lease lasts at least this long from now; default: its original duration"`
}

type logInput struct {
	LeaseToken
	Body struct {
		Lines []string `json:"lines" nullable:"false" minItems:"1" maxItems:"1000" doc:"a line is cut after 3,276 bytes"`
	}
}

func (s *Server) registerLeases(api huma.API) {
	lease := operation("lease-job", http.MethodPost, "/queues/{name}/lease", "leases", "Lease a job of a queue")
	lease.Description = "204: there was none within wait. The lease must be completed, failed, released or extended before lease_until."
	lease.Responses = map[string]*huma.Response{"204": {Description: "No job"}}
	register(s, api, lease, s.lease)
	several := operation("lease-any-job", http.MethodPost, "/lease", "leases", "Lease a job of one of several queues")
	several.Description, several.Responses = lease.Description, map[string]*huma.Response{
		"204": {Description: "No job"},
	}
	register(s, api, several, s.leaseAny)
	report := func(verb, summary string, maxBody int64) huma.Operation {
		o := operation(verb+"-job", http.MethodPost, "/leases/{token}/"+verb, "leases", summary,
			http.StatusNotFound, http.StatusGone, http.StatusGatewayTimeout)
		o.MaxBodyBytes = maxBody
		return o
	}
	log := report("log", "Append lines to the log of a leased job", s.options.MaxBodyBytes)
	log.Description = "The log keeps the first and the last lines, at most 1,000 with 64 KiB, over retries, and goes with the job. The lease is not extended."
	register(s, api, report("complete", "End a leased job as done", s.options.MaxBodyBytes), s.complete)
	register(s, api, report("fail", "Report the failure of a leased job", s.options.MaxBodyBytes), s.fail)
	register(s, api, report("progress", "Report the progress of a leased job, and extend the lease", maxSmallBody),
		s.progressed)
	register(s, api, report("heartbeat", "Extend a lease", maxSmallBody), s.heartbeat)
	register(s, api, log, s.appendLog)
	register(s, api, report("release", "Give a leased job back as if it had not been leased", maxSmallBody), s.release)
	s.registerManyLeases(api)
}

func (s *Server) lease(ctx context.Context, in *leaseInput) (*leaseOutput, error) {
	o := service.LeaseOptions{Queues: []string{in.Name}, Wait: in.span, Version: in.Version}
	out, err := s.leaseFrom(ctx, o, in.Body)
	return out, ofQueue("name", err)
}

func (s *Server) leaseAny(ctx context.Context, in *leaseAnyInput) (*leaseOutput, error) {
	out, err := s.leaseFrom(ctx, service.LeaseOptions{Queues: in.Queue, Wait: in.span, Version: in.Version}, in.Body)
	return out, ofQueue("queue", err)
}

// ofQueue renames the field of an error about a queue of a lease, where the request has another name for it.
func ofQueue(field string, err error) error {
	var e *service.Error
	if !errors.As(err, &e) || !strings.HasPrefix(e.Field, "queues[") {
		return err
	}
	return &service.Error{Code: e.Code, Detail: e.Detail, Field: field}
}

func (s *Server) leaseFrom(
	ctx context.Context, o service.LeaseOptions, body *LeaseBody,
) (*leaseOutput, error) {
	if body != nil {
		o.Worker, o.LeaseFor = body.Worker, seconds(body.LeaseForS)
	}
	l, err := serviceOf(ctx).Lease(ctx, callerOf(ctx), o)
	if err != nil {
		return nil, err
	}
	if l == nil {
		return &leaseOutput{Status: http.StatusNoContent}, nil
	}
	return &leaseOutput{
		Status: http.StatusOK, Traceparent: l.Job.Traceparent, Tracestate: l.Job.Tracestate, Body: l,
	}, nil
}

func (s *Server) complete(ctx context.Context, in *completeInput) (*struct{}, error) {
	var result service.Result
	if in.Body != nil {
		result = in.Body.result()
	}
	return nil, serviceOf(ctx).Complete(ctx, callerOf(ctx), in.Token, result)
}

func (s *Server) fail(ctx context.Context, in *failInput) (*struct{}, error) {
	var o service.FailOptions
	if in.Body != nil {
		o = in.Body.options(serviceOf(ctx).Now())
	}
	return nil, serviceOf(ctx).Fail(ctx, callerOf(ctx), in.Token, o)
}

func (s *Server) progressed(ctx context.Context, in *progressInput) (*output[service.LeaseState], error) {
	var p core.Progress
	var extend time.Duration
	if b := in.Body; b != nil {
		p = core.Progress{Num: b.Numerator, Den: b.Denominator, Text: b.Text}
		if b.Percent != nil {
			p.Num, p.Den = uint32(*b.Percent), 100
		}
		extend = seconds(b.ExtendS)
	}
	return bodyOf(serviceOf(ctx).Report(ctx, callerOf(ctx), in.Token, p, extend))
}

func (s *Server) heartbeat(ctx context.Context, in *heartbeatInput) (*output[service.LeaseState], error) {
	var extend time.Duration
	if in.Body != nil {
		extend = seconds(in.Body.ExtendS)
	}
	return bodyOf(serviceOf(ctx).Heartbeat(ctx, callerOf(ctx), in.Token, extend))
}

func (s *Server) appendLog(ctx context.Context, in *logInput) (*output[service.LeaseState], error) {
	return bodyOf(serviceOf(ctx).AppendLog(ctx, callerOf(ctx), in.Token, in.Body.Lines))
}

func (s *Server) release(ctx context.Context, in *LeaseToken) (*struct{}, error) {
	return nil, serviceOf(ctx).Release(ctx, callerOf(ctx), in.Token)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
