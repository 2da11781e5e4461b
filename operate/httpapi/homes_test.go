package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"broker/frontends/shared/httpserver"
)

func TestEveryRouteHasAHome(t *testing.T) {
	t.Parallel()
	for _, route := range suiteRoutes(t) {
		method, path, _ := strings.Cut(route, " ")
		if _, has := homes[method+" "+apiPath+path]; !has {
			t.Errorf("homes has no row for %s", route)
		}
	}
	s := New(Options{})
	s.HTTP()
	for pattern, home := range homes {
		method, path, _ := strings.Cut(pattern, " ")
		r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, nil)
		if _, found := s.mux.Handler(r); found != pattern {
			t.Errorf("%q finds the route %q", pattern, found)
		}
		if got := s.HomeOf(r); got != home {
			t.Errorf("%s is served at %d, want %d", pattern, got, home)
		}
	}
}

func TestKeysAreAtTheLeaderAndProfilesAtEachNode(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	s.HTTP()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/api/v1/jobs", nil)
	if s.HomeOf(r) != httpserver.AtNode {
		t.Error("a submission is not served at the node")
	}
	profile := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/debug/pprof/heap", nil)
	if s.HomeOf(profile) != httpserver.AtEach {
		t.Error("a node does not answer for its own profile")
	}
	r.Header.Set("idempotency-key", "k")
	if s.HomeOf(r) != httpserver.AtLeader {
		t.Error("a submission with a key is served at the node")
	}
}
