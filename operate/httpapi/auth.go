package httpapi

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"broker/access"
	"broker/operate/service"
)

// visitKey is the context key of the visit of a request.
type visitKey struct{}

// visit is what the guards have found out about a request. guarded puts it into the context.
type visit struct {
	caller  service.Caller
	service *service.Service // that serves the request to its end; nil: none is needed
}

// callerOf returns the caller of a request.
func callerOf(ctx context.Context) service.Caller {
	if v, is := ctx.Value(visitKey{}).(*visit); is {
		return v.caller
	}
	return service.Caller{}
}

// serviceOf is the service for a request, which whenReady has found.
func serviceOf(ctx context.Context) *service.Service { return ctx.Value(visitKey{}).(*visit).service }

// guarded serves a request only if its client is authenticated, or if no authentication is required.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		principal, refused := s.authenticate(r)
		if refused != nil {
			if refused.Status == http.StatusUnauthorized {
				w.Header().Add("WWW-Authenticate", `Basic realm="broker", charset="UTF-8"`)
				w.Header().Add("WWW-Authenticate", `Bearer realm="broker"`)
			}
			refused.write(w)
			return
		}
		if !s.admits(w, r, principal) {
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitKey{}, &visit{
			caller: s.caller(r, principal),
		})))
	})
}

// admits reports whether the principal of a request may have one more connection. If not, it has written the response.
func (s *Server) admits(w http.ResponseWriter, r *http.Request, p *access.Principal) bool {
	full := s.limiter.admit(r, p)
	if full == nil {
		return true
	}
	w.Header().Set("Connection", "close")
	full.write(w)
	return false
}

// restricted is guarded for requests that belong to no queue and need a role.
func (s *Server) restricted(r access.Role, next http.HandlerFunc) http.Handler {
	return s.guarded(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if err := callerOf(req.Context()).Require(r); err != nil {
			s.problemOf(err, nil).write(w)
			return
		}
		next(w, req)
	}))
}

// caller returns the caller of a request.
func (s *Server) caller(r *http.Request, p *access.Principal) service.Caller {
	c := service.Caller{Principal: p, Address: r.RemoteAddr, Via: "http", Access: s.options.Access}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		c.Identity = r.TLS.VerifiedChains[0][0].Subject.String()
	}
	return c
}

// authenticate finds the principal of a request: by its token or password, else by its certificate, else the default
// principal.
func (s *Server) authenticate(r *http.Request) (*access.Principal, *Problem) {
	if s.options.Locked {
		return nil, problem(http.StatusUnauthorized, codeUnauthorized,
			"nobody may use this port until http.password, http.tls_client_ca or principals are set")
	}
	if header := r.Header.Get("Authorization"); header != "" {
		name := ""
		secret, ok := bearer(header)
		if !ok {
			name, secret, _ = r.BasicAuth() // a right password is accepted with any user name
		}
		return s.bySecret(r, name, secret)
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		if p := s.options.Access.ByCertificate(r.TLS.VerifiedChains[0][0]); p != nil {
			return p, nil
		}
	}
	p := s.options.Access.Default(s.options.DefaultPrincipal)
	if p == access.Nobody || s.options.Password != "" && s.options.DefaultPrincipal == "" {
		return nil, problem(http.StatusUnauthorized, codeUnauthorized, "a password or token is required")
	}
	return withoutCredentials(r, p)
}

// withoutCredentials admits a client as p, although it has sent no credentials that count.
func withoutCredentials(r *http.Request, p *access.Principal) (*access.Principal, *Problem) {
	if !knownHost(r) {
		return nil, problem(http.StatusForbidden, codeUnknownHost,
			"without credentials this port is called by address or as localhost only")
	}
	return p, nil
}

// bearer reads the token from an Authorization header.
func bearer(header string) (token string, ok bool) {
	scheme, token, ok := strings.Cut(header, " ")
	return strings.TrimSpace(token), ok && strings.EqualFold(scheme, "Bearer")
}

// knownHost reports whether the Host header is an IP address or localhost, or whether the client has a certificate. It
// protects against DNS rebinding: an attacker can make his own host name resolve to this address, and then his web
// pages could read this port.
func knownHost(r *http.Request) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if host == "localhost" || r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil
}

// protected is guarded for requests that change data or cause much work. It refuses requests that a page of another
// site makes in a browser. http.CrossOriginProtection lets every GET pass, so each request is judged as a POST.
func (s *Server) protected(next http.Handler) http.Handler {
	p := http.NewCrossOriginProtection()
	allowed := s.guarded(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := *r
		asked.Method = http.MethodPost
		if p.Check(&asked) != nil {
			problem(http.StatusForbidden, codeCrossOrigin, "a page of another site may not do this").write(w)
			return
		}
		allowed.ServeHTTP(w, r)
	})
}
