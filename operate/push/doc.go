// Package push sends jobs to programs that cannot keep a connection open. Each job of a target's queues becomes a POST
// request to the URL of the target, and the answer ends the job. To the broker it is an ordinary worker: it leases
// jobs, and completes, fails or releases them.
//
//	push.go     Pusher: the current targets
//	target.go   leases the jobs of a target, as its concurrency, its rate and its receiver allow
//	client.go   the broker client that leases jobs
//	request.go  a job as a request: headers, signature, and allowed addresses
//	answer.go   the meaning of an answer for the job
//	settle.go   reports the result to the broker
//
// A request is sent only once its lease is durable. So the attempt number in its header increases if the broker is
// killed while it waits for the answer. A restart does not end the lease, because the receiver may still be working.
package push
