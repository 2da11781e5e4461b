// Package relay lets clients connect to any node of a cluster. A Gateway accepts the clients of a node: while the node leads,
// it serves them itself; otherwise their bytes (gateway.go) and their HTTP requests (http.go) are passed on to the leader. When
// the lead changes, relayed connections are closed: clients connect again, as after a restart of the broker.
//
//	client ─▶ node that follows ── DialLeader ──▶ FromMember ─▶ leader's event loop, or its HTTP server
//
// It knows connections and HTTP headers. It does not know what is inside a connection, nor how a leader is elected: that is
// core/replica's, which it meets as a Node. So it stands with the front-ends, beside the event loop, and not in core/replica, which
// knows no HTTP and no clients. cmd/broker calls it.
package relay
