// Package relay lets clients connect to any node of a cluster. A Gateway accepts the clients of a node. While the node
// leads, it serves them. Otherwise it passes their bytes (gateway.go) and their HTTP requests (http.go) on to the
// leader. When the leader changes, relayed connections are closed, and clients reconnect as after a restart of the
// broker.
//
//	client ─▶ node that follows ── DialLeader ──▶ FromMember ─▶ leader's event loop, or its HTTP server
//
// The package knows connections and HTTP headers. It does not know the protocols inside connections, nor how a leader
// is elected: core/replica does that, which implements Node. The package is among the front-ends and not in
// core/replica, because core/replica knows no HTTP and no clients. cmd/broker calls it.
package relay
