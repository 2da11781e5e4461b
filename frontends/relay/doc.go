// Package relay lets clients connect to any node of a cluster. A Gateway accepts the clients of a node. While the node
// leads, it serves them. Otherwise it serves the clients of some front-ends and some HTTP requests itself, over a link
// to the leader, and passes the bytes (gateway.go) and the HTTP requests (http.go) of the others on to the leader. When
// the leader changes, connections whose bytes were passed on are closed, and clients reconnect as after a restart of
// the broker; requests that were passed on are answered that there is no leader, and streams of events go on at the
// next one (streams.go).
//
// Passed on are clients of Qless and Conveyor, requests to the console and those of the API that are not of producers
// and workers, and during an upgrade all that the leader's build does not serve over a link. Qless has its whole state
// in the process of the leader. Conveyor has check-ins, counters, jobs that are being closed and published messages
// there, and the API its operations, audit log, idempotency keys and event hub.
//
//	client ─▶ node that follows ── DialLeader ──▶ FromMember ─▶ leader's event loop, or its HTTP server
//
// The package knows connections and HTTP headers. It does not know the protocols inside connections, nor how a leader
// is elected: core/replica does that, which implements Node. The package is among the front-ends and not in
// core/replica, because core/replica knows no HTTP and no clients. cmd/broker calls it.
package relay
