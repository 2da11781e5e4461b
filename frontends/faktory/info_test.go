package faktory

import (
	"testing"

	"broker/frontends/frontendtest"
)

// INFO is about queues, so it waits until their last change is durable.
func TestInfoWaitsForTheCommitOfWhatItCounts(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, plain, frontendtest.NeverCommits)
	one, other := s.Dial("one"), s.Dial("other")
	greet(one)
	greet(other)
	flush := s.Broker.(interface{ Flush() }).Flush
	one.Send("PUSH {\"jid\":\"12345678\",\"jobtype\":\"x\",\"queue\":\"q\",\"args\":[]}\r\n")
	flush()
	one.Want("+OK\r\n")
	one.Send("QUEUE PAUSE q\r\n")
	other.Send("INFO\r\n")
	if got := other.Unheld(); len(got) > 0 {
		t.Errorf("answered before the commit: %q", got)
	}
	flush()
	one.Want("+OK\r\n")
	bulk(t, other)
}
