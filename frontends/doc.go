// Package frontends is what every protocol front-end shares: the Session that turns bytes into operations, the Conn it
// writes to, and the Outbox that holds replies back until they are durable.
//
// # How a front-end works
//
// The event loop offers received bytes to Session.Feed. The session cuts them into requests, translates those into
// core.Op, hands all of them to core.Broker.Do in one call and writes the replies it gets to its Outbox, each with the
// commit it rests on. When Feed returns, the loop sends what may leave. Replies that come later (a job for a parked
// lease, an outcome, a commit) wake the connection: the loop calls Deliver, then offers unread input again.
//
// Feed is offered all unread input each time more has come, so it looks at a packet's announced size before its body. It
// returns once it has written some 256 KiB to the Outbox, so that limits are looked at before the next request; the loop
// calls it again at once. A front-end that also has a method Overflow() []byte words the refusal for a client that meets
// its connection limit.
//
// # Adding one
//
// Copy frontends/workq, the smallest. Rewrite doc.go first; then wire.go with its fuzz target, which knows no core; then
// mapping.go, errors.go (a test proves that each of core.Errors has a row), commands.go and session.go; a transcript for
// each command; the dialect for frontendtest; a section in config and a line in cmd/broker/frontends.go.
package frontends
