package cli

import (
	"bytes"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

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
