package push

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"broker/core"
)

// Outcome is the result of a request.
type Outcome uint8

// Done: the receiver has done the job. Failed: it has not, or that is unknown. Deferred: it asks for more time (429 or
// 503 with Retry-After). Unreachable: nothing was sent. Late: the job or its lease had ended before the answer came.
const (
	Done Outcome = iota
	Failed
	Deferred
	Unreachable
	Late
)

// Outcomes lists all outcomes.
var Outcomes = [...]Outcome{Done, Failed, Deferred, Unreachable, Late}

// Limits of the part of an answer that is read, and of Retry-After.
const (
	maxResult  = 1 << 20
	maxMessage = 1 << 10
	minRetryIn = time.Second
	maxRetryIn = 30 * 24 * time.Hour
)

// answer is an Outcome with the data for the broker.
type answer struct {
	outcome Outcome
	result  []byte        // Done
	class   string        // Failed: error type
	err     error         // all other outcomes: the cause
	retryIn time.Duration // Deferred
	aborted bool          // Failed: Close did not wait for the answer, so the job may still be done
}

// post makes the request of a job.
func (t *target) post(parent context.Context, r *core.Reply) answer {
	ctx, cancel := context.WithTimeout(parent, t.Timeout)
	defer cancel()
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx,
		&httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req, err := t.request(ctx, r)
	if err != nil {
		return answer{outcome: Failed, class: "InvalidRequest", err: err}
	}
	resp, err := t.http.Do(req)
	switch {
	case err == nil:
		defer func() { _ = resp.Body.Close() }() // read as far as it matters
		return t.judge(ctx, resp)
	case !connected.Load():
		return answer{outcome: Unreachable, err: unwrapURL(err)}
	}
	return t.broken(ctx, err)
}

// unwrapURL drops the URL from an error, because its query may contain a secret.
func unwrapURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// broken is the result for a missing or incomplete answer.
func (t *target) broken(ctx context.Context, err error) answer {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return answer{outcome: Failed, class: "Timeout", err: fmt.Errorf("no answer within %v", t.Timeout)}
	}
	return answer{
		outcome: Failed, class: "ConnectionLost",
		err:     fmt.Errorf("the connection broke before the answer: %w", unwrapURL(err)),
		aborted: ctx.Err() != nil,
	}
}

// judge interprets an answer.
func (t *target) judge(ctx context.Context, resp *http.Response) answer {
	if resp.StatusCode/100 == 2 {
		result, err := io.ReadAll(io.LimitReader(resp.Body, maxResult+1))
		switch {
		case err != nil:
			return t.broken(ctx, err)
		case len(result) > maxResult:
			return answer{
				outcome: Failed, class: "ResultTooLarge",
				err: fmt.Errorf("the body of the answer is larger than %d bytes", maxResult),
			}
		}
		return answer{outcome: Done, result: result}
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxMessage)) // a part of the body is enough
	status := strings.TrimSpace(fmt.Sprintf("%d %s", resp.StatusCode, http.StatusText(resp.StatusCode)))
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		if d, ok := retryAfter(resp.Header.Get("Retry-After"), t.p.o.Broker.Now()); ok {
			return answer{outcome: Deferred, err: errors.New(status), retryIn: d}
		}
	}
	message := strings.TrimSpace(strings.ToValidUTF8(string(body), "\uFFFD"))
	if resp.StatusCode/100 == 3 {
		status += ": redirects are not followed"
	}
	return answer{
		outcome: Failed, class: "HTTP " + strconv.Itoa(resp.StatusCode), err: errors.New(cmp.Or(message, status)),
	}
}

// retryAfter reads seconds or a date.
func retryAfter(text string, now core.Instant) (d time.Duration, ok bool) {
	if seconds, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32); err == nil {
		d = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		d = core.InstantOf(at).Sub(now)
	} else {
		return 0, false
	}
	return min(max(d, minRetryIn), maxRetryIn), true
}
