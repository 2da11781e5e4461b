package resp

import "broker/access"

// login is the result of AUTH.
type login struct {
	principal *access.Principal // nil: none is needed
	refusal   string            // empty: the client is accepted
	hangUp    bool              // too many logins have failed
}

// authenticate checks a password or token. If the client gives a name with a token, it must be the name of the token's
// principal. from is the client's address.
func (s *Server) authenticate(name, given, from string) login {
	control := s.Broker.Control()
	if p := control.ByToken(given); p != nil && (name == "" || name == p.Name()) {
		return login{principal: p}
	}
	named := name != "" && name != "default"
	switch {
	case s.Password == "" && !control.Enabled():
		if name == "default" { // as in Redis, a user without a password may give any password
			return login{}
		}
		if !named {
			return login{refusal: "ERR AUTH <password> called without any password configured for the default user. " +
				"Are you sure your configuration is correct?"}
		}
	case s.Password != "" && !named && access.SamePassword(given, s.Password):
		return login{principal: access.PasswordOf(s.Broker.Protocol())}
	}
	return login{
		refusal: "WRONGPASS invalid username-password pair or user is disabled.",
		hangUp:  control.Logins().Failed(from, name, s.Broker.Now()) > 0,
	}
}
