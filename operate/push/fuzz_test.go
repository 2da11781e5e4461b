package push

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"testing"
	"unicode/utf8"

	"broker/core"
)

// stopped is a broker with a stopped clock.
type stopped struct{ core.Broker }

func (stopped) Now() core.Instant { return 1 }

// FuzzAnswer judges arbitrary answers of receivers: no panic, and the stored part is limited and valid text.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 302 Found\r\nLocation: http://a/\r\n\r\n",
		"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 4294967295\r\n\r\n",
		"HTTP/1.1 503 x\r\nRetry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n\r\n",
		"HTTP/1.1 500 x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n\xff\x00\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
	} {
		f.Add([]byte(seed))
	}
	target := &target{p: New(Options{Broker: stopped{}})}
	f.Fuzz(func(t *testing.T, in []byte) {
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(in)), nil)
		if err != nil {
			return
		}
		defer func() { _ = resp.Body.Close() }() // only read
		a := target.judge(context.Background(), resp)
		switch {
		case len(a.result) > maxResult, a.outcome == Done && a.err != nil, a.outcome != Done && a.err == nil:
			t.Errorf("%+v", a)
		case a.outcome == Deferred && (a.retryIn < minRetryIn || a.retryIn > maxRetryIn):
			t.Errorf("retried after %v", a.retryIn)
		case a.err != nil && a.class != "ConnectionLost" &&
			(len(a.err.Error()) > 2*maxMessage+100 || !utf8.ValidString(a.err.Error())):
			t.Errorf("%q", a.err)
		}
		if d, ok := retryAfter(resp.Header.Get("Retry-After"), 1); ok && (d < minRetryIn || d > maxRetryIn) {
			t.Errorf("retried after %v", d)
		}
	})
}
