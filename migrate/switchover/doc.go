// Package switchover moves queues from a server to the broker while their clients work, and back. It stands in the proxy between the
// clients and their server (migrate/wiretap), and has a second connection to the broker for each client that needs one.
//
//	           ┌─▶ server   always
//	client ⇄ conn
//	           └─▶ broker   once the client uses a queue that is or was cut over
//
// A queue is in one of three states. New jobs go to the server while it is old or returned, and to the broker while it is new. Workers
// get the jobs of both sides unless it is old. All other requests go to the server, apart from those about jobs of the broker.
//
//	board.go      the queues and their states
//	broker.go     connections to the broker
//	options.go    one joiner for each protocol
//	outbox.go     bytes on their way to a connection
//	gearman.go, gearmanconn.go, gearmanreply.go, gearmanpacket.go   Gearman: requests of a connection overlap
//	sequence.go   protocols whose replies have the order of the requests
//	faktory.go, faktorywork.go   Faktory: submissions, and what workers ask
//	beanstalkd.go   beanstalkd
//	control.go    changes and reports over HTTP
//
// A reply says what one of the two sides has said. A submission that the broker has not acknowledged gets an error.
package switchover
