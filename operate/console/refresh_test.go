package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// TestTabsShareOneRendering fetches a page for many tabs at once, again in the next turn, and once it is too old.
func TestTabsShareOneRendering(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	pages := &refreshes{now: func() time.Time { return now }}
	rendered := 0
	fetch := func(turn uint64, key string) string {
		w := httptest.NewRecorder()
		pages.serve(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody), turn, key,
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				rendered++
				w.Header().Set("X-Test", key)
				w.WriteHeader(http.StatusAccepted)
				_, _ = fmt.Fprint(w, key, rendered) // a buffer
			}))
		if w.Code != http.StatusAccepted || w.Header().Get("X-Test") != key {
			t.Errorf("status %d, header %v", w.Code, w.Header())
		}
		return w.Body.String()
	}
	var tabs sync.WaitGroup
	for range 50 {
		tabs.Go(func() {
			if got := fetch(1, "a"); got != "a1" {
				t.Errorf("a tab shows %s", got)
			}
		})
	}
	tabs.Wait()
	if got := fetch(1, "b"); got != "b2" {
		t.Errorf("another page: %s", got)
	}
	if got := fetch(2, "a"); got != "a3" {
		t.Errorf("after a change: %s", got)
	}
	now = now.Add(refreshFor - 1)
	if got := fetch(2, "a"); got != "a3" {
		t.Errorf("a moment later: %s", got)
	}
	now = now.Add(1)
	if got := fetch(2, "a"); got != "a4" {
		t.Errorf("after %v: %s", refreshFor, got)
	}
}

// TestRefreshContinuesAfterItsFirstTabCloses closes the tab for which the page is being rendered.
func TestRefreshContinuesAfterItsFirstTabCloses(t *testing.T) {
	t.Parallel()
	pages := &refreshes{now: func() time.Time { return time.Unix(1_800_000_000, 0) }}
	ctx, closeTab := context.WithCancel(t.Context())
	pages.serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", http.NoBody).WithContext(ctx), 1, "a",
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			closeTab()
			w.WriteHeader(http.StatusOK)
			_, _ = fmt.Fprint(w, r.Context().Err()) // a buffer
		}))
	w := httptest.NewRecorder()
	pages.serve(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody), 1, "a", http.NotFoundHandler())
	if w.Code != http.StatusOK || w.Body.String() != "<nil>" {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}
