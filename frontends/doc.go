// Package frontends holds the parts that all protocol front-ends share. A Session turns bytes into operations. A Conn
// is the connection that it writes to. A Pipeline sends many requests to the broker in one call. An Outbox holds
// replies back until they are durable. Requests, or Pipelined where there is a pipeline, is the part of a session that
// is the same in all protocols: the loop over the input, the end of the input, the client of the broker.
//
// # How a front-end works
//
// The event loop offers received bytes to Requests.Feed, which calls the session's Step for each request. Step parses
// the request and adds it to the Pipeline: with Expect and Ask if the broker must decide an operation, with Local if
// the answer needs no broker. MarkDue makes the pipeline run before the next request. Pipeline.Run passes all
// operations to core.Broker.Do in one call and calls Respond for each request, in order. Respond writes the answer to
// the Outbox, with the commit that must be durable before the answer is sent. When Feed returns, the loop sends all
// answers that need not wait.
//
//	bytes ─ Feed, Step ─▶ requests ─ Pipeline ─▶ operations ─ Do ─▶ replies ─ Respond, Push ─▶ Outbox ─ commit ─▶ socket
//
// Some replies come later: a job for a parked lease, an outcome, a commit. They wake the connection. The loop calls
// Deliver, which runs an empty pipeline; the pipeline passes the replies to Push. Then the loop offers the unread input
// again.
//
// Whenever more input arrives, the loop passes all unread input to Feed. Feed checks the announced size of a packet
// before it waits for the body. It returns after it has written more than PauseAt to the Outbox, so that limits are
// checked before the next request; the loop calls it again at once. A front-end may have a method Overflow() []byte,
// which returns the reply to a client above the connection limit.
//
// A session whose leases outlive its connection keeps Deliveries, to release jobs that were not completely sent when
// the connection ends.
//
// # Adding a front-end
//
// Copy frontends/workq, the smallest. Rewrite doc.go first. Then write wire.go with its fuzz target, which does not
// import core; then mapping.go, errors.go (a test proves that each of core.Errors has a row), commands.go, pipeline.go
// (the R of the Pipeline) and session.go; a transcript for each command; the dialect for frontendtest. CONTRIBUTING.md
// lists the places outside its package that must know a new front-end. If a protocol has its own order of jobs, or data
// that the core does not have, do as frontends/qless: choose jobs with core.LeaseJob and store documents.
package frontends
