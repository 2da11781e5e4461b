package httpapi

import (
	"net/http"
	"strings"
	"testing"
)

func TestProfilesAreServedToWhomMayHaveThem(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options        Options
		path, password string
		want           int
	}{
		"off":             {Options{}, "heap", "", http.StatusNotFound},
		"heap":            {Options{Profiling: true}, "heap?debug=1", "", http.StatusOK},
		"list":            {Options{Profiling: true}, "", "", http.StatusOK},
		"goroutines":      {Options{Profiling: true}, "goroutine?debug=2", "", http.StatusOK},
		"unknown":         {Options{Profiling: true}, "nothing", "", http.StatusNotFound},
		"processor":       {Options{Profiling: true}, "profile?seconds=1", "", http.StatusOK},
		"trace":           {Options{Profiling: true}, "trace?seconds=1", "", http.StatusOK},
		"no password":     {Options{Profiling: true, Password: "p"}, "heap", "", http.StatusUnauthorized},
		"password":        {Options{Profiling: true, Password: "p"}, "heap", "p", http.StatusOK},
		"no command line": {Options{Profiling: true}, "cmdline", "", http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, tc.options)
			if status, body := f.get("/debug/pprof/"+tc.path, tc.password); status != tc.want {
				t.Errorf("status %d, want %d: %.80s", status, tc.want, body)
			}
		})
	}
}

// TestProfilesAreReadable looks at the beginning of each: gzip, the text of a trace, or a list.
func TestProfilesAreReadable(t *testing.T) {
	t.Parallel()
	f := setup(t, Options{Profiling: true})
	for path, want := range map[string]string{
		"heap": "\x1f\x8b", "trace?seconds=0.1": "go 1.", "heap?debug=1": "heap profile:", "": "allocs ",
	} {
		if status, body := f.get("/debug/pprof/"+path, ""); status != http.StatusOK || !strings.HasPrefix(body, want) {
			t.Errorf("%s: status %d, %.20q", path, status, body)
		}
	}
}
