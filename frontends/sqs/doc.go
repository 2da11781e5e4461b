// Package sqs serves clients of Amazon SQS (API 2012-11-05) by both of its protocols: AWS JSON 1.0 and Query with replies in XML.
//
//	SQS                      the broker
//	queue                    queue of that name; also one that clients of other protocols have made
//	message                  job with a raw body; MessageId is its id, SequenceNumber its number
//	receive                  lease that no connection holds, as long as the visibility timeout
//	receipt handle           number of the job and start of the lease
//	delete                   complete
//	visibility timeout 0     the lease expires
//	message group            tag sqs.group:G, the key by which the queue shares its workers
//	dead-letter queue        move to another queue under the same identity
//	attributes, tags         documents of the broker's store
//
//	wire.go, wire_*.go       bytes to requests and results to bytes, for both protocols
//	signature.go             Signature Version 4
//	commands.go              the table of actions, with the right that each needs
//	server.go                net/http to actions; frontend.go is what lives longer than a request
//	queues.go, settings.go   queues and their attributes
//	mapping.go               messages and jobs
//	errors.go                errors, one row a kind
//
// Requests are served on goroutines of net/http, each with a client of the broker for its time. A reply leaves after the commit
// that it reveals. A lease whose reply cannot be written is released.
package sqs
