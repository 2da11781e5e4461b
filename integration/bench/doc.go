// Command bench runs the same load against the broker and its peers and prints the results side by side.
// It also measures how the broker's costs grow, and compares the results with the targets.
//
// Each measurement starts a server process with an empty data folder on free loopback ports. Contenders take turns
// within a round, so that a slow minute of the machine affects all of them, and the medians of the rounds are compared.
// This process generates the load with two threads that use plain sockets, epoll and hand-encoded packets, and allocate
// nothing per job: processor time that the load generator uses is missing from the server.
//
//	go run -C integration ./bench -rounds 5 -modes a,c -durability sync
//
// A cluster of three brokers is measured with the clients at its leader, and at the nodes that follow: the processor
// time of all three nodes is shown with the leader's part of it. It is measured beside a stream of NATS JetStream with
// three replicas and sync_interval always, which is used as a work queue: publish, pull one, acknowledge, each answered
// by the servers. The first run builds the NATS server.
//
// On one machine all nodes share the processors, so that work which moves from one to another gains nothing. With
// -share each node has a part of them to itself, and no more. Clients are at all nodes, and at those that follow, over
// TLS too. Beside an earlier program, that shows what the machines of a cluster do together:
//
//	go run -C integration ./bench -share 0.4 -before OLD -servers cluster -protocols gearman,sqs -modes a -clients 64
//
// Modes that compare, all with 256-byte bodies:
//
//	a  background jobs: 8 producers with 64 submissions in flight each, 8 workers at the same time
//	b  the same with one submission in flight per producer
//	c  foreground round trips: 8 clients with one job in flight each, 8 workers
//	d  submit everything, then drain
//	e  memory: resident bytes per waiting job
//	w  Gearman: 64 producers and 64 workers, each with 16 jobs in hand, as pools behind one connection have
//
// Modes that measure the broker alone:
//
//	f  deep queues: fill, kill, start, lease, drain
//	g  connections: thousands that are idle, thousands that wait for one queue
//	h  growth: the cost of a job against queues, scheduled jobs, coalescing keys and payload
package main
