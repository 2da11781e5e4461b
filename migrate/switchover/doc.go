// Package switchover moves queues from a server to the broker and back while their clients keep working. It runs in the
// proxy between the clients and their server (migrate/wiretap), and reads their bytes with migrate/wire. It opens a
// second connection, to the broker, for each client that needs one.
//
//	           ┌─▶ server   always
//	client ⇄ conn
//	           └─▶ broker   once the client uses a queue that is or was cut over
//
// A queue is old, new or returned. New jobs go to the server while the queue is old or returned, and to the broker
// while it is new. Workers get jobs from both sides, unless the queue is old. Requests about jobs of the broker go to
// the broker. All other requests go to the server.
//
//	board.go      the queues and their states
//	broker.go     connections to the broker
//	options.go    the switch, and the table of protocols
//	outbox.go     bytes on their way to a connection
//	gearman.go, gearmanconn.go, gearmanreply.go, gearmanpacket.go   Gearman: requests of a connection overlap
//	sequence.go   protocols whose replies are in the order of the requests
//	faktory.go, faktorywork.go   Faktory: submissions, and what workers ask
//	beanstalk.go    Beanstalk
//	control.go    changes and reports over HTTP
//
// Every reply comes from one of the two sides. If the broker does not acknowledge a submission, the client gets an
// error.
package switchover
