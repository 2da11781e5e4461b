// Package relay lets clients connect to any node of a cluster. A Gateway accepts the clients of a node. While the node
// leads, it serves them. Otherwise it serves the clients of some front-ends itself, over a link to the leader, and
// passes the bytes (gateway.go) and the HTTP requests (http.go) of the others on to the leader. When the leader
// changes, these connections are closed, and clients reconnect as after a restart of the broker.
//
// Passed on are clients of Qless and Conveyor, requests to the API and the console, and during an upgrade the clients
// of front-ends that the leader's build does not serve over a link. Qless has its whole state in the process of the
// leader. Conveyor has check-ins, counters, jobs that are being closed and published messages there, and the API its
// operations, idempotency keys and event hub.
//
//	client ─▶ node that follows ── DialLeader ──▶ FromMember ─▶ leader's event loop, or its HTTP server
//
// The package knows connections and HTTP headers. It does not know the protocols inside connections, nor how a leader
// is elected: core/replica does that, which implements Node. The package is among the front-ends and not in
// core/replica, because core/replica knows no HTTP and no clients. cmd/broker calls it.
package relay
