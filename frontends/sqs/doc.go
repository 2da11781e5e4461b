// Package sqs serves clients of Amazon SQS (API 2012-11-05) in both of its protocols: AWS JSON 1.0, and Query with XML
// replies.
//
//	SQS                      the broker
//	queue                    queue with the same name, from any protocol
//	message                  job with a raw body; MessageId is its id, SequenceNumber its number
//	receive                  lease for the visibility timeout, independent of connections
//	receipt handle           number of the job and start of the lease
//	delete                   complete
//	visibility timeout 0     the lease expires
//	message group            tag sqs.group:G, the key by which the queue shares its workers
//	dead-letter queue        move to another queue under the same identity
//	attributes, tags         documents of the broker's store
//
//	wire.go, wire_*.go       bytes to requests and results to bytes, for both protocols
//	signature.go             Signature Version 4
//	commands.go              the table of actions, with their rights
//	server.go                net/http to actions, in place of session.go
//	frontend.go              the state that outlives a request
//	queues.go, settings.go   queues and their attributes
//	mapping.go               messages and jobs
//	errors.go                errors, one row a kind
//
// Requests run on goroutines of net/http, each with its own broker client. A reply is sent after the commit of the data
// that it contains. If the reply with a lease cannot be written, the lease is released.
//
// # Nodes
//
// At a node of a cluster that follows, the front-end authenticates requests and serves the actions on messages. The
// front-end of the leader runs the others for it (shared.go). A change of a queue's settings reaches the other nodes a
// moment later; the client that made it sees it at once at its own node.
package sqs
