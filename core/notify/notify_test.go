package notify_test

import (
	"testing"

	"broker/core/notify"
)

func TestSignalIsSetOrNot(t *testing.T) {
	t.Parallel()
	s := notify.NewSignal()
	isSet := func() bool {
		select {
		case <-s:
			return true
		default:
			return false
		}
	}
	if isSet() {
		t.Error("a new signal is set")
	}
	s.Set()
	s.Set()
	if !isSet() || isSet() {
		t.Error("a signal that is set twice must be received once")
	}
}
