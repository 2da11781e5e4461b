package httpapi

import (
	"testing"
	"time"

	"github.com/rs/zerolog"

	"broker/operate/service"
)

func TestProblemsSayWhenToTryAgain(t *testing.T) {
	t.Parallel()
	s := New(Options{Log: zerolog.Nop()})
	for wait, want := range map[time.Duration]string{0: "1", time.Millisecond: "1", 90 * time.Minute: "5400"} {
		p := s.problemOf(&service.Error{Code: service.CodeTooMany, RetryAfter: wait})
		if got := p.GetHeaders().Get("Retry-After"); got != want || p.Status != 429 {
			t.Errorf("%v: status %d, Retry-After %q, want %q", wait, p.Status, got, want)
		}
	}
}
