package faktory

import (
	"testing"

	"broker/frontends/frontendtest"
)

// INFO and QUEUE LATENCY are about queues, so they wait until the last change of the queues is durable.
func TestAnswersAboutQueuesWaitForTheirCommit(t *testing.T) {
	t.Parallel()
	for _, request := range []string{"INFO", "QUEUE LATENCY q", "QUEUE LATENCY none q"} {
		s := frontendtest.Open(t, plain, frontendtest.NeverCommits)
		one, other := s.Dial("one"), s.Dial("other")
		greet(one)
		greet(other)
		flush := s.Broker.(interface{ Flush() }).Flush
		one.Send("PUSH {\"jid\":\"12345678\",\"jobtype\":\"x\",\"queue\":\"q\",\"args\":[]}\r\n")
		flush()
		one.Want("+OK\r\n")
		one.Send("QUEUE PAUSE q\r\n")
		other.Send(request + "\r\n")
		if got := other.Unheld(); len(got) > 0 {
			t.Errorf("%s is answered before the commit: %q", request, got)
			continue
		}
		flush()
		one.Want("+OK\r\n")
		bulk(t, other)
	}
}
