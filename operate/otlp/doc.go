// Package otlp sends spans of jobs to an OpenTelemetry collector, by OTLP over HTTP.
//
//	events of traced jobs ─▶ spans ─▶ POST endpoint/v1/traces, JSON
//
// An Exporter is a client of the broker that subscribes to the events of jobs with a trace. Only sampled traces make
// spans. All of them are children of the span that the client sent with the job, like the worker's own spans:
//
//	publish QUEUE   the submission, without a duration
//	wait QUEUE      from the time at which the job was ready until a worker leased it; one for each lease
//	process QUEUE   from the lease until the job was done, failed or released
//
// Attributes follow the semantic conventions for messaging. The exporter never delays a job. While the collector is
// slow or down, the core keeps a bounded number of events. It drops and counts the rest.
package otlp
