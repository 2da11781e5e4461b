package cli

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestPushTriesOnceMoreUnderTheSameKeyIfTheOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	for _, lose := range []func(w http.ResponseWriter){
		func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write(
				[]byte(`{"status":503,"code":"outcome_unknown","title":"x","detail":"it may apply"}`),
			) // the client reports it
		},
		func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, // ends the connection
	} {
		pushWithLostAnswers(t, lose)
	}
}

func pushWithLostAnswers(t *testing.T, lose func(w http.ResponseWriter)) {
	t.Helper()
	for _, lost := range []int{0, 1, 2} { // answers that are lost
		var mu sync.Mutex // requests of an ended connection come from another goroutine
		var keys []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			keys = append(keys, r.Header.Get("Idempotency-Key"))
			if len(keys) <= lost {
				lose(w)
				return
			}
			_, _ = w.Write([]byte(`{"id":"j1"}`)) // likewise
		}))
		t.Cleanup(server.Close)
		cmd := pushCommand()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetArgs([]string{"--server", server.URL, "q", "body"})
		err := cmd.Execute()
		mu.Lock()
		sent := keys
		mu.Unlock()
		if want := min(lost+1, 2); len(sent) != want || sent[0] == "" || sent[0] != sent[len(sent)-1] {
			t.Errorf("%d lost: requests under the keys %q, want %d with one key", lost, sent, want)
		}
		if lost < 2 && (err != nil || out.String() != "j1\n") || lost == 2 && Code(err) != ExitFailed {
			t.Errorf("%d lost: %v, %q", lost, err, out.String())
		}
	}
}

// TestCommandsReachUnixSockets runs a command against a server on a unix socket, by both spellings of its address.
func TestCommandsReachUnixSockets(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "http.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"queues": [{"name": "emails", "ready": 3}]}`)) // the client reports it
	})}
	ended := make(chan struct{})
	go func() { // ends with Close
		defer close(ended)
		_ = server.Serve(listener) // says that it was closed
	}()
	t.Cleanup(func() {
		_ = server.Close() // ends Serve
		<-ended
	})
	for _, address := range []string{"unix:" + path, "unix://" + path} {
		cmd := queuesCommand()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetArgs([]string{"--server", address, "--token", "secret"})
		if err := cmd.Execute(); err != nil || !strings.Contains(out.String(), "emails      3") {
			t.Errorf("%s: %v\n%s", address, err, out.String())
		}
	}
	cmd := queuesCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"--server", "unix:" + path})
	if err := cmd.Execute(); Code(err) != ExitDenied {
		t.Errorf("without a token: exit code %d, %v", Code(err), err)
	}
}

func TestServersMayLackSchemeHostOrPort(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]string{
		"jobs":                  "http://jobs:7420",
		"jobs:1":                "http://jobs:1",
		":1":                    "http://127.0.0.1:1",
		"[::1]":                 "http://[::1]:7420",
		"https://jobs":          "https://jobs",
		"unix:/run/broker":      "http://localhost",
		"http://127.0.0.1:7420": "http://127.0.0.1:7420",
	} {
		c, err := newClient(server, "")
		if err != nil {
			t.Errorf("%s: %v", server, err)
			continue
		}
		if got := c.base.String(); got != want {
			t.Errorf("%s is %s, want %s", server, got, want)
		}
	}
}
