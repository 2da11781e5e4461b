// Package wiretap watches the traffic between clients and a server of another project. It can record the traffic, or
// play it against a second server and compare the replies.
//
//	clients ⇄ Proxy ⇄ server              bytes pass unchanged
//	            │ Event
//	            ├─▶ Recorder ─▶ file ─▶ Play ─┐
//	            └─▶ Comparer ◀────────────────┘
//	                   │ the same requests
//	                   ▼
//	            the second server
//
// A Comparer cuts the bytes of a connection into requests and replies. It plays a request after the first server has
// replied, one at a time over all connections, so that the second server processes requests in the same order as the
// first. Requests without a reply, and requests whose reply waits for other clients, are played when they arrive. Then
// it compares both replies.
//
// It normalises allowed differences: ids that the server chooses, times, and which of several waiting workers gets
// which job. Some requests are not played and count as unknown: requests about jobs from before the comparison, and
// reports about the whole server.
//
// Beside the replies, a ledger counts the deliveries of each job at both servers. If the first server has no job for a
// client, the second one is asked over a connection of the comparison, with the state of the client's connection: a job
// that it delivers there stays there, and does not disturb the later requests. It is not asked while a job may be on
// its way at the first server.
//
// The comparison never disturbs clients. Its queue is bounded. If the queue is full, or the first server was restarted,
// it starts anew with an empty second server. If the second server is lost, it ends with a reason, and the proxy
// continues.
//
//	proxy.go      moves the bytes
//	recording.go  the file
//	protocol.go   the properties of a protocol that the comparison needs
//	gearman.go, faktory.go, workq.go, beanstalk.go, qless.go   the protocols
//	line.go       bytes of a connection → requests with their replies
//	compare.go    the order of play
//	gap.go        what is skipped, and the new start
//	poll.go       asks the second server for jobs that the first one does not deliver
//	early.go      deliveries that come before the reply to their submission
//	played.go     a connection to the second server
//	verdict.go    equal, different or unknown
//	ids.go        ids at both servers
//	ledger.go     what the servers did with each job
//	report.go, page.go   counts and differences, also as a page
package wiretap
