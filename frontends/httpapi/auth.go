package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// guarded asks for the password, if there is one: by basic authentication with any user's name, or as a bearer token. If
// there is none, the host's name has to do.
func (s *Server) guarded(next http.Handler) http.Handler {
	if s.options.Password == "" {
		return knownHost(next)
	}
	want := sha256.Sum256([]byte(s.options.Password))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, basic := r.BasicAuth()
		if !basic {
			password, _ = strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		}
		got := sha256.Sum256([]byte(password)) // of one length, so that the comparison tells nothing by its time
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="broker"`)
			http.Error(w, "password required", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
