package httpapi

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCompressesLargeTexts(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("a job in a queue, ", 400)
	for name, tc := range map[string]struct {
		accept, kind, encoding string
		status                 int
		body                   string
		want                   string // content encoding
	}{
		"json":              {"gzip", "application/json", "", 200, large, "gzip"},
		"one of several":    {"br, GZIP;q=0.5", "text/html; charset=utf-8", "", 200, large, "gzip"},
		"problem":           {"gzip", "application/problem+json", "", 500, large, "gzip"},
		"sniffed":           {"gzip", "", "", 0, large, "gzip"},
		"small":             {"gzip", "application/json", "", 200, "{}", ""},
		"empty":             {"gzip", "", "", 204, "", ""},
		"not accepted":      {"br", "application/json", "", 200, large, ""},
		"refused":           {"gzip;q=0", "application/json", "", 200, large, ""},
		"picture":           {"gzip", "image/png", "", 200, large, ""},
		"events":            {"gzip", "text/event-stream", "", 200, large, ""},
		"part of a file":    {"gzip", "text/css", "", 206, large, ""},
		"compressed before": {"gzip", "text/css", "zstd", 200, large, "zstd"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(compressed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for header, value := range map[string]string{"Content-Type": tc.kind, "Content-Encoding": tc.encoding} {
					if value != "" {
						w.Header().Set(header, value)
					}
				}
				if tc.status == http.StatusPartialContent {
					w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/*", len(tc.body)-1))
				}
				if tc.encoding == "" && tc.body != "" {
					w.Header().Set("Content-Length", fmt.Sprint(len(tc.body)))
				}
				if tc.status != 0 {
					w.WriteHeader(tc.status)
				}
				for rest := tc.body; rest != ""; rest = rest[min(len(rest), 1000):] {
					_, _ = io.WriteString(w, rest[:min(len(rest), 1000)])
				}
			})))
			defer s.Close()
			resp := fetch(t, s.URL, tc.accept)
			var body io.Reader = resp.Body
			if tc.want == "gzip" {
				r, err := gzip.NewReader(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				body = r
			}
			got, err := io.ReadAll(body)
			if err != nil || string(got) != tc.body {
				t.Errorf("body of %d bytes, %v; want %d", len(got), err, len(tc.body))
			}
			if got := resp.Header.Get("Content-Encoding"); got != tc.want {
				t.Errorf("encoding %q, want %q", got, tc.want)
			}
			if want := max(tc.status, 200); resp.StatusCode != want {
				t.Errorf("status %d, want %d", resp.StatusCode, want)
			}
			if resp.Header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("vary %q", resp.Header.Get("Vary"))
			}
		})
	}
}

func fetch(t *testing.T, url, accept string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", accept)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// TestFlushSendsTheBufferedBytes reads each part of a response before the next part is written.
func TestFlushSendsTheBufferedBytes(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]string{"small": "one", "large": strings.Repeat("x", 3*minCompressed)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next := make(chan bool)
			s := httptest.NewServer(compressed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				for range next {
					_, _ = io.WriteString(w, part)
					if err := http.NewResponseController(w).Flush(); err != nil {
						t.Error(err)
					}
				}
			})))
			defer s.Close()
			defer close(next)
			go func() { next <- true }()
			resp := fetch(t, s.URL, "gzip")
			var body io.Reader = resp.Body
			if resp.Header.Get("Content-Encoding") == "gzip" {
				r, err := gzip.NewReader(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				body = r
			}
			got := make([]byte, len(part))
			for range 3 {
				if _, err := io.ReadFull(body, got); err != nil || string(got) != part {
					t.Fatalf("got %.10q, %v", got, err)
				}
				next <- true
			}
		})
	}
}

// TestPanicBreaksTheAnswer shows that a client can distinguish a broken response from a complete one.
func TestPanicBreaksTheAnswer(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(compressed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, strings.Repeat("x", 3*minCompressed))
		_ = http.NewResponseController(w).Flush() // an error shows below
		panic(http.ErrAbortHandler)
	})))
	defer s.Close()
	resp := fetch(t, s.URL, "gzip")
	r, err := gzip.NewReader(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err == nil {
		t.Error("the answer looks complete")
	}
}
