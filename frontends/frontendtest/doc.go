// Package frontendtest tests a front-end on a real broker, without sockets and with a fake clock.
//
// # Stage
//
// A [Stage] is a broker on a memory disk, a fake clock and the front-end under test. [Stage.Dial] opens a connection;
// the goroutine of the test does the work of the event loop:
//
//	stage := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
//		return workq.New(access.Unrestricted(b, core.Workq), workq.Options{})
//	})
//	c := stage.Dial("producer")
//	c.Send("inspect queue ping\r\n")
//	c.Want("-NOT-FOUND\r\n")
//	stage.Advance(time.Second)      // moves the clock; the broker does what is due
//
// Commits happen on a goroutine of the broker, so Want waits for the bytes, up to a limit. The stage overwrites the
// input slice when Feed returns, so a session that keeps a part of it fails at once.
//
// # Transcripts
//
// [PlayAll] plays each .wire file of testdata on a new stage, once with whole requests and once byte by byte:
//
//	# a comment
//	let id    6ba7b810-9dad-41d1-80b4-00c04fd430c4       defines ${id}
//	producer> add ${id} ping 1000 60000 4\r\npong\r\n   sends; Go escapes; spaces around the text are ignored
//	producer< +OK\r\n                                    must be received next, byte for byte
//	clock     +1s                                        moves the clock
//	silent    producer                                   has received nothing else
//	eof       producer                                   closes its sending side
//	closed    producer                                   the front-end has closed the connection
//	hangup    producer                                   the client closes the connection
//	restart                                              the broker restarts on the same disk; all connections end
//
// Connections open when they are first named. An undefined ${name} in received text matches anything up to the next
// literal text, and keeps this value from then on; ${} matches anything. At the end of a transcript all received bytes
// must have been read. In whole mode, consecutive sends of one connection are fed together, which tests pipelining. A
// protocol whose packets are written by name sets Encode in [Script].
//
// # Suite
//
// [Run] tests the behaviour that all front-ends share. A [Dialect] supplies the requests of the protocol. The HTTP API
// has no sessions. Its test puts an HTTP server behind a session to run the suite.
//
// [SplitFuzz] feeds random input whole and in pieces, and compares the replies.
package frontendtest
