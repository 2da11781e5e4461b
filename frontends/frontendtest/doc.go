// Package frontendtest plays clients of a front-end on a real broker, without sockets and without waiting for time.
//
// # The stage
//
// A [Stage] is a broker on a memory disk, a clock that stands still and the front-end under test. [Stage.Dial] opens a
// connection as the event loop would; the test's own goroutine is the loop:
//
//	stage := frontendtest.Open(t, func(b core.Broker) frontends.Frontend { return workq.New(b, workq.Options{}) })
//	c := stage.Dial("producer")
//	c.Send("inspect queue ping\r\n")
//	c.Want("-NOT-FOUND\r\n")
//	stage.Advance(time.Second)      // moves the clock; the broker handles what is due
//
// Commits happen on the broker's own goroutine, so Want waits, up to a limit, until the bytes are there. After each call
// of Feed the slice that the session saw is overwritten: a session that keeps a part of it shows that at once.
//
// # Transcripts
//
// [PlayAll] plays each .wire file of testdata on a fresh stage, once with whole requests and once byte by byte:
//
//	# a comment
//	let id    6ba7b810-9dad-41d1-80b4-00c04fd430c4       ${id} means that from here on
//	producer> add ${id} ping 1000 60000 4\r\npong\r\n   sends; Go escapes; blanks around the text are not part of it
//	producer< +OK\r\n                                    must come next, byte for byte
//	clock     +1s                                        time passes
//	silent    producer                                   nothing has come that was not asked for
//	eof       producer                                   closes its sending side
//	closed    producer                                   the front-end has closed the connection
//	hangup    producer                                   the client goes away
//	restart                                              the broker stops and starts on the same disk; all are hung up
//
// Connections open when first named. ${name} in a received text takes whatever stands there, up to the text behind it,
// and means that text from then on; ${} takes anything and forgets it. At the end nothing may be left unread. Sends of
// one connection that follow each other are offered together in the whole mode: that is pipelining. A protocol that
// writes packets by name hands over an Encode of its own in [Script].
//
// # The suite
//
// [Run] tests what every front-end owes, in the words of a [Dialect].
package frontendtest
