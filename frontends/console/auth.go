package console

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
)

// guarded asks for the password, if there is one.
func (c *Console) guarded(next http.Handler) http.Handler {
	if c.options.Password == "" {
		return next
	}
	want := sha256.Sum256([]byte(c.options.Password))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		got := sha256.Sum256([]byte(password)) // of one length, so that the comparison tells nothing by its time
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="broker"`)
			http.Error(w, "password required", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
