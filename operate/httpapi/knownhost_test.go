package httpapi

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"broker/core/coretest"
)

// all paths that the port serves, by their guard.
var (
	health  = []string{"GET /healthz", "GET /readyz", "GET /health"}
	numbers = []string{
		"GET /metrics", "GET /stats", "GET /debug/pprof/", "GET /debug/pprof/heap", "GET /debug/pprof/trace?seconds=1",
		"GET /debug/pprof/profile?seconds=1",
		"GET /api/v1/queues", "GET /api/v1/queues/q", "GET /api/v1/jobs", "GET /api/v1/jobs/1", "GET /api/v1/workers",
		"GET /api/v1/summary", "GET /api/v1/settings", "GET /api/v1/audit", "GET /api/v1/operations",
		"GET /api/v1/drain",
	}
	changes = []string{
		"POST /api/v1/backup", "POST /api/v1/drain", "POST /api/v1/resume", "POST /api/v1/reload",
		"PATCH /api/v1/queues/q",
		"POST /api/v1/queues/q/clear", "DELETE /api/v1/queues/q", "POST /api/v1/queues/q/lease",
		"POST /api/v1/workers/quiet",
		"POST /api/v1/workers/w/quiet", "POST /api/v1/workers/terminate", "DELETE /api/v1/workers/w",
		"POST /api/v1/jobs",
		"DELETE /api/v1/jobs/1", "POST /api/v1/leases/x/complete",
	}
)

// status sends a request to a server that is still starting, so that accepted requests have no effect.
func (f *fixture) status(request string, change func(*http.Request)) int {
	f.t.Helper()
	method, path, _ := strings.Cut(request, " ")
	req, err := http.NewRequestWithContext(f.t.Context(), method, f.url+path, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	change(req)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	_ = resp.Body.Close() // the status says all
	return resp.StatusCode
}

func TestForeignHostNamesReachHealthOnly(t *testing.T) {
	t.Parallel()
	open, locked := setup(t, Options{Profiling: true}), setup(t, Options{Profiling: true, Password: "p"})
	for _, host := range []string{
		"evil.example", "evil.example:7420", "127.0.0.1.evil.example", "localhost.evil.example:7420",
	} {
		call := func(r *http.Request) { r.Host = host }
		for _, request := range append(append([]string{}, numbers...), changes...) {
			if got := open.status(request, call); got != http.StatusForbidden {
				t.Errorf("%s as %s: %d", request, host, got)
			}
			if got := locked.status(request, call); got != http.StatusUnauthorized {
				t.Errorf("%s as %s, with a password to give: %d", request, host, got)
			}
		}
		for _, request := range health {
			if got := open.status(request, call); got == http.StatusForbidden {
				t.Errorf("%s as %s: %d", request, host, got)
			}
		}
	}
	for _, host := range []string{"localhost", "localhost:7420", "127.0.0.1", "127.0.0.1:7420", "[::1]:7420"} {
		for _, request := range []string{
			"GET /metrics", "GET /stats", "GET /api/v1/queues", "POST /api/v1/resume", "GET /debug/pprof/heap",
		} {
			if got := open.status(request, func(r *http.Request) { r.Host = host }); got != http.StatusOK &&
				got != http.StatusServiceUnavailable {
				t.Errorf("%s as %s: %d", request, host, got)
			}
		}
	}
}

func TestRequestsFromPagesOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	f := setup(t, Options{Password: "p"})
	foreign := append([]string{"GET /api/v1/backup"}, changes...) // a copy of the store is work that a page could cause
	for what, change := range map[string]func(*http.Request){
		"another site":         func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"a sister of the site": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"another origin":       func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		"no origin":            func(r *http.Request) { r.Header.Set("Origin", "null") },
		"another port":         func(r *http.Request) { r.Header.Set("Origin", "http://"+r.URL.Hostname()+":1") },
	} {
		for _, request := range foreign {
			got := f.status(request, func(r *http.Request) {
				r.SetBasicAuth("", "p") // like a browser that has stored the password
				change(r)
			})
			if got != http.StatusForbidden {
				t.Errorf("%s from %s: %d", request, what, got)
			}
		}
	}
	for _, request := range foreign {
		if got := f.status(request,
			func(r *http.Request) { r.SetBasicAuth("", "p") }); got != http.StatusServiceUnavailable {
			t.Errorf("%s by a program: %d", request, got)
		}
	}
}

func TestAllButHealthAsksForThePassword(t *testing.T) {
	t.Parallel()
	clk := coretest.NewClock()
	f := setup(t, Options{Profiling: true, Password: "p", Now: clk.Now})
	for _, request := range append(append([]string{}, numbers...), changes...) {
		clk.Advance(time.Hour) // past the limit of failed logins
		for what, change := range map[string]func(*http.Request){
			"none":           func(*http.Request) {},
			"wrong":          func(r *http.Request) { r.SetBasicAuth("p", "q") },
			"empty":          func(r *http.Request) { r.SetBasicAuth("p", "") },
			"in the query":   func(r *http.Request) { r.URL.RawQuery = "seconds=1&password=p" },
			"no bearer":      func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") },
			"a longer token": func(r *http.Request) { r.Header.Set("Authorization", "Bearer pp") },
		} {
			if got := f.status(request, change); got != http.StatusUnauthorized {
				t.Errorf("%s, password %s: %d", request, what, got)
			}
		}
	}
}

// A client with a certificate may use the host name of the server's own certificate.
func TestClientsWithACertificateMayUseAnyName(t *testing.T) {
	t.Parallel()
	handler := New(Options{Log: zerolog.Nop()}).HTTP().Handler
	for name, tc := range map[string]struct {
		tls  *tls.ConnectionState
		want int
	}{
		"shown":     {&tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{}}}}, http.StatusOK},
		"not shown": {&tls.ConnectionState{}, http.StatusForbidden},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://broker.example:7420/metrics", http.NoBody)
		r.TLS = tc.tls
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != tc.want {
			t.Errorf("%s: %d, want %d", name, w.Code, tc.want)
		}
	}
}
