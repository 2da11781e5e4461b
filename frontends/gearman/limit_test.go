package gearman

import "testing"

func TestConnectionLimitIsRefusedWithAnErrorPacket(t *testing.T) {
	t.Parallel()
	want := "\x00RES\x00\x00\x00\x13\x00\x00\x00\x20QUEUE_ERROR\x00Too many connections"
	if got := string(New(nil, Options{}).Overflow()); got != want {
		t.Errorf("Overflow is %q, want %q", got, want)
	}
}
