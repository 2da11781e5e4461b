package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
)

// In a cluster, the leader reloads its settings, whichever node is asked.
func TestReloadSaysWhoseSettings(t *testing.T) {
	t.Parallel()
	for node, want := range map[string]string{"": "settings reloaded\n", "n1": "settings of n1, the leader, reloaded\n"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			_, _ = w.Write([]byte(`{"settings":[{"name":"data","value":"x"},{"name":"cluster.node","value":"` + node + `"}]}`))
		}))
		t.Cleanup(server.Close)
		cmd := reloadCommand()
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetArgs([]string{"--server", server.URL})
		if err := cmd.Execute(); err != nil || out.String() != want {
			t.Errorf("node %q: %v, %q", node, err, out.String())
		}
	}
}
