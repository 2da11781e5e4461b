package httpapi

import (
	"net/http"
	"testing"
)

func TestProfilesNeedTheAdminRole(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options        Options
		path, password string
		want           int
	}{
		"off":             {Options{}, "heap", "", http.StatusNotFound},
		"heap":            {Options{Profiling: true}, "heap?debug=1", "", http.StatusOK},
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
