// Command bench loads the broker and its peers with the same work in the same run and prints the figures side by side.
// It also loads the broker alone, to see how its costs grow, and ends with what was measured beside the targets.
//
// Each server is a process of its own, started on free loopback ports with an empty data folder for every single
// measurement; contenders take turns within a round, so that a slow minute of the machine hurts them alike, and the
// medians of the rounds are compared. The load comes from this process: two threads that talk to plain sockets through
// epoll, with packets encoded by hand and no memory taken for a job, because whatever the load program uses of the
// machine's cores is missing from the server.
//
//	go run ./integration/bench -rounds 5 -modes a,c -durability sync
//
// Modes that compare, all with 256-byte bodies:
//
//	a  background jobs: 8 producers with 64 submissions in flight each, 8 workers at the same time
//	b  the same with one submission in flight per producer
//	c  foreground round trips: 8 clients with one job in flight each, 8 workers
//	d  submit everything, then drain
//	e  memory: resident bytes per waiting job
//
// Modes that look at the broker alone:
//
//	f  deep queues: fill, kill, start, lease, drain
//	g  connections: thousands that are idle, thousands that wait for one queue
//	h  growth: the cost of a job against queues, scheduled jobs, coalescing keys and payload
package main
