// Package otlp sends spans of jobs to an OpenTelemetry collector, by OTLP over HTTP.
//
//	events of traced jobs ─▶ spans ─▶ POST endpoint/v1/traces, JSON
//
// An Exporter is a client of the broker that subscribes to the events of jobs with a trace. Only sampled traces make spans.
// All of them are children of the span that the client sent with the job, as the worker's own spans are:
//
//	publish QUEUE   the submission, without a duration
//	wait QUEUE      from the time when the job was ready until a worker leased it; one for each lease
//	process QUEUE   from the lease until the job was done, failed or given back
//
// Attributes follow the semantic conventions for messaging. Nothing here can delay a job: while the collector is slow or
// away, the core keeps a bounded number of events, and drops and counts the others.
package otlp
