package httpapi

import (
	"cmp"
	"errors"
	"maps"
	"net/http"

	"broker/access"
	"broker/core"
	"broker/operate/service"
)

// AddPages adds what is served on the same addresses as the API, such as the web console and the documentation, by
// patterns of http.ServeMux. Call it before HTTP.
func (s *Server) AddPages(routes map[string]http.Handler) { maps.Copy(s.pages, routes) }

// SetMissingPage sets the response to browsers for an unknown path; otherwise it is a problem, as for other clients.
func (s *Server) SetMissingPage(h http.Handler) { s.missing = h }

// Service is the service behind the API; nil while the broker starts.
func (s *Server) Service() *service.Service {
	if b := s.backend.Load(); b != nil {
		return b.Service
	}
	return nil
}

// Caller finds the caller of a request by its Authorization header or certificate; otherwise it is the default
// principal.
func (s *Server) Caller(r *http.Request) (service.Caller, bool) {
	principal, refused := s.authenticate(r)
	return s.caller(r, principal), refused == nil
}

// Admit reports whether a caller may have one more connection. If not, it has written the response.
func (s *Server) Admit(w http.ResponseWriter, r *http.Request, caller service.Caller) bool {
	return s.admits(w, r, caller.Current())
}

// CheckSecret finds the caller for a password or token from a form. If there is none, the status is the reason.
func (s *Server) CheckSecret(r *http.Request, secret string) (who service.Caller, status int) {
	if s.options.Locked {
		return who, http.StatusUnauthorized
	}
	principal, refused := s.bySecret(r, "", secret)
	if refused != nil {
		return who, refused.Status
	}
	return s.caller(r, principal), http.StatusOK
}

// Status is the HTTP status for an error of the service.
func (*Server) Status(err error) int {
	var e *service.Error
	if !errors.As(err, &e) {
		return http.StatusInternalServerError
	}
	return cmp.Or(statuses[e.Code], http.StatusConflict)
}

// bySecret checks a token or a password. A correct secret always passes, because clients with wrong secrets may share
// the address or the name. name is the user name that the client gives; empty: none.
func (s *Server) bySecret(r *http.Request, name, secret string) (*access.Principal, *Problem) {
	if secret != "" {
		if p := s.options.Access.ByToken(secret); p != nil {
			return p, nil
		}
		if s.options.Password != "" && access.SamePassword(secret, s.options.Password) {
			return access.PasswordOf(core.HTTP), nil
		}
	}
	if s.options.Password == "" && !s.options.Access.Enabled() {
		return withoutCredentials(r, access.Everyone)
	}
	if wait := s.options.Access.Logins().Failed(r.RemoteAddr, name, s.options.Now()); wait > 0 {
		p := problem(http.StatusTooManyRequests, codeTooManyLogins, "too many failed logins from this address or name")
		p.retryAfterS = int(wait.Seconds()) + 1
		return nil, p
	}
	return nil, problem(http.StatusUnauthorized, codeUnauthorized, "wrong credentials")
}
