// Package push sends jobs to programs that cannot hold a connection: each job of a target's queues becomes a POST request to
// the URL of the target, and the answer ends the job. To the broker it is a worker like any other: it leases jobs, and
// completes, fails or gives back what it has leased.
//
//	push.go     Pusher: the targets in force
//	target.go   takes the jobs of a target, as many as its concurrency, its rate and its receiver admit
//	client.go   the broker's client that leases
//	request.go  a job as a request: headers, signature, and where connections may lead
//	answer.go   what an answer means for the job
//	settle.go   tells the broker
//
// A request leaves only once its lease is durable. So the number of the attempt in its header grows when the broker is killed
// while it waits for the answer. That lease is not ended by a restart: the receiver may still be at work.
package push
