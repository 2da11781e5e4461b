package cli

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// An import that is started again finds the jobs which it has moved before: by their id while they wait, by their
// unique key once they have ended.
func TestImportSkipsJobsThatItHasMovedBefore(t *testing.T) {
	t.Parallel()
	for code, skipped := range map[string]bool{"duplicate_id": true, "not_unique": true, "queue_full": false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"title":"Conflict","status":409,"detail":"refused","code":"` + code + `"}`))
		}))
		t.Cleanup(server.Close)
		c, err := newClient(server.URL, "")
		if err != nil {
			t.Fatal(err)
		}
		refused, err := (&submitter{client: c}).Submit(t.Context(), []map[string]any{{"id": "a"}, {"id": "b"}})
		if err != nil || (len(refused) == 0) != skipped {
			t.Errorf("%s: refused %v, %v", code, refused, err)
		}
	}
}
