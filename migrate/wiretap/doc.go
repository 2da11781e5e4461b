// Package wiretap watches the conversation between clients and a server of another project: it records it, and it plays it against
// a second server and compares the replies.
//
//	clients ⇄ Proxy ⇄ server              bytes pass unchanged
//	            │ Event
//	            ├─▶ Recorder ─▶ file ─▶ Play ─┐
//	            └─▶ Comparer ◀────────────────┘
//	                   │ the same requests
//	                   ▼
//	            the second server
//
// A Comparer cuts the bytes of a connection into requests and replies. It plays a request once the first server has replied, one at a
// time over all connections, so that the second server decides in the order of the first one. Requests that nobody replies to, and those
// that wait for the work of others, are played when they come. Then it compares both replies.
//
// What may differ is normalised: ids that the server chooses, times, and which of several waiting workers gets which job. Some requests
// are not played and count as unknown: requests about jobs that were submitted before the comparison began, waits that ended
// without a job, and reports about the whole server.
//
// The comparison never harms clients. Its queue is bounded; when it is full, or the second server is lost, the comparison ends and says
// why, and the proxy goes on.
//
//	proxy.go      moves the bytes
//	recording.go  the file
//	protocol.go   what the comparison has to know of a protocol
//	gearman.go, faktory.go, workq.go, beanstalkd.go, qless.go   the protocols
//	line.go       bytes of a connection → requests with their replies
//	compare.go    the order of play
//	played.go     a connection to the second server
//	verdict.go    equal, different or unknown
//	ids.go        ids at both servers
//	report.go     counts and differences
package wiretap
