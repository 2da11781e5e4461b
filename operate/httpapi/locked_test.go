package httpapi

import (
	"net/http"
	"testing"
)

func TestLockedPortAdmitsNobody(t *testing.T) {
	t.Parallel()
	f := setup(t, Options{Locked: true, Profiling: true})
	for _, request := range append(append([]string{}, numbers...), changes...) {
		for what, change := range map[string]func(*http.Request){
			"no credentials": func(*http.Request) {},
			"a password":     func(r *http.Request) { r.SetBasicAuth("", "p") },
			"a token":        func(r *http.Request) { r.Header.Set("Authorization", "Bearer p") },
		} {
			if got := f.status(request, change); got != http.StatusUnauthorized {
				t.Errorf("%s with %s: %d", request, what, got)
			}
		}
	}
	if got := f.status("GET /healthz", func(*http.Request) {}); got == http.StatusUnauthorized {
		t.Error("health checks are locked too")
	}
}
