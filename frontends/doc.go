// Package frontends is what all protocol front-ends share: the Session that turns bytes into operations, the Conn it
// writes to, the Pipeline that has many requests decided at once, and the Outbox that holds replies back until they are
// durable.
//
// # How a front-end works
//
// The event loop offers received bytes to Session.Feed. The session parses requests and adds each of them to its
// Pipeline: by Expect and Ask with the operation that the broker must decide, by Local if the answer needs no broker.
// Pipeline.Run hands all operations to core.Broker.Do in one call and calls Respond for each request, in order. Respond
// writes the answer to the Outbox together with the commit that it rests on. When Feed returns, the loop sends what may
// leave.
//
//	bytes ─ Feed ─▶ requests ─ Pipeline ─▶ operations ─ Do ─▶ replies ─ Respond, Push ─▶ Outbox ─ commit ─▶ socket
//
// Replies that come later (a job for a parked lease, an outcome, a commit) wake the connection: the loop calls Deliver,
// which runs an empty pipeline to fetch them and gets them by Push. Then the loop offers the unread input again.
//
// Each time more has come, Feed is offered all unread input. It checks the size that a packet announces before it looks
// at the body. It returns once it has written some 256 KiB to the Outbox, so that limits are checked before the next
// request; the loop calls it again at once. A front-end with a method Overflow() []byte words the refusal for a client
// that exceeds the connection limit.
//
// A session whose leases outlive its connection keeps Deliveries: jobs that the client cannot have received are released
// when the connection ends.
//
// # Adding one
//
// Copy frontends/workq, the smallest. Rewrite doc.go first. Then write wire.go with its fuzz target, which does not import
// core; then mapping.go, errors.go (a test proves that each of core.Errors has a row), commands.go, pipeline.go (the R of
// the Pipeline) and session.go; a transcript for each command; the dialect for frontendtest. CONTRIBUTING.md lists what has to
// know a new front-end outside of its package. A protocol with its own order of jobs, or with data that the core does not
// have, chooses jobs with core.LeaseJob and keeps documents, as frontends/qless does.
package frontends
