package push

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"broker/core"
	"broker/frontends/shared/tracecontext"
)

// Headers of a request.
const (
	jobIDHeader     = "Broker-Job-Id"
	queueHeader     = "Broker-Queue"
	typeHeader      = "Broker-Type"
	attemptHeader   = "Broker-Attempt"
	signatureHeader = "Broker-Signature"
)

// Times and sizes of connections. Many servers close a connection after five idle seconds; a request must not be sent
// at that moment.
const (
	connectTimeout = 10 * time.Second
	idleTimeout    = 3 * time.Second
	maxHeaderBytes = 64 << 10 // of an answer
)

// newHTTP makes the client of a target. It follows no redirects and uses no proxy, so that jobs only go to the
// configured address.
func newHTTP(u *url.URL, t *Target) (*http.Client, error) {
	dialer := &net.Dialer{Timeout: connectTimeout}
	switch u.Scheme {
	case "https":
	case "http":
		dialer.Control = onlyLoopback
	default:
		return nil, fmt.Errorf("%q is neither https nor http", u.Scheme)
	}
	secured := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(t.CA) > 0 {
		secured.RootCAs = x509.NewCertPool()
		if !secured.RootCAs.AppendCertsFromPEM(t.CA) {
			return nil, errors.New("there is no certificate in ca")
		}
	}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: secured, TLSHandshakeTimeout: connectTimeout,
			ForceAttemptHTTP2: true,
			MaxIdleConns:      t.Concurrency, MaxIdleConnsPerHost: t.Concurrency, IdleConnTimeout: idleTimeout,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeaderBytes,
		},
	}, nil
}

// onlyLoopback refuses connections without TLS to other hosts. It checks the resolved address.
func onlyLoopback(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("http is for receivers on this host only, and %s is not: use https", host)
	}
	return nil
}

// request is the request for a leased job.
func (t *target) request(ctx context.Context, r *core.Reply) (*http.Request, error) {
	job := r.Job
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(job.Body))
	if err != nil {
		return nil, err
	}
	h := req.Header
	h.Set("User-Agent", strings.TrimSuffix("broker/"+t.p.o.Version, "/"))
	h.Set("Content-Type", contentType(job))
	if parent, state := tracecontext.Split(job.Trace); parent != "" {
		h.Set("traceparent", parent)
		if state != "" {
			h.Set("tracestate", state)
		}
	}
	for name, value := range t.Headers {
		if h.Set(name, value); strings.EqualFold(name, "Host") {
			req.Host = value
		}
	}
	h.Set(jobIDHeader, escape(job.Identity()))
	h.Set(queueHeader, escape(job.Queue))
	h.Set(typeHeader, escape(cmp.Or(job.Type, job.Queue)))
	h.Set(attemptHeader, strconv.FormatUint(uint64(r.Lease.Attempts), 10))
	if t.Secret != "" {
		h.Set(signatureHeader, signature(t.Secret, t.p.o.Broker.Now(), job.Body))
	}
	return req, nil
}

// signature proves that the sender of a request knows the secret, and when the request was made.
func signature(secret string, now core.Instant, body []byte) string {
	at := strconv.FormatInt(now.Time().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(at + "."))
	mac.Write(body)
	return "t=" + at + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

func contentType(job *core.Job) string {
	switch {
	case job.Format == core.Args:
		return "application/json"
	case utf8.Valid(job.Body):
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// escape encodes a name for a header: all characters except visible ASCII, and the percent sign, are percent-encoded.
func escape(name string) string {
	plain := func(b byte) bool { return b > ' ' && b < 0x7f && b != '%' }
	var out []byte
	for i := range len(name) {
		if b := name[i]; plain(b) {
			out = append(out, b)
		} else {
			out = fmt.Appendf(out, "%%%02X", b)
		}
	}
	return string(out)
}
