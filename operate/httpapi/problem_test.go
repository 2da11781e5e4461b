package httpapi

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"broker/operate/service"
)

func TestProblemsSayWhenToTryAgain(t *testing.T) {
	t.Parallel()
	s := New(Options{Log: zerolog.Nop()})
	for wait, want := range map[time.Duration]string{0: "1", time.Millisecond: "1", 90 * time.Minute: "5400"} {
		p := s.problemOf(&service.Error{Code: service.CodeTooMany, RetryAfter: wait}, nil)
		if got := p.GetHeaders().Get("Retry-After"); got != want || p.Status != 429 {
			t.Errorf("%v: status %d, Retry-After %q, want %q", wait, p.Status, got, want)
		}
	}
}

func TestTooLargeBodyIsToldTheLimitOfItsRoute(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{MaxBodyBytes: 1 << 20})
	for path, limit := range map[string]int{"/marks": maxSmallBody, "/jobs": 1 << 20} {
		p := f.call("POST", apiPath+path, `"`+strings.Repeat("x", limit)+`"`).problem(413, "body_too_large")
		want := "the body of this request must not be larger than " + strconv.Itoa(limit) + " bytes"
		if p["detail"] != want {
			t.Errorf("%s: %v, want %s", path, p["detail"], want)
		}
	}
}
