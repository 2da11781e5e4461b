package resp

import (
	"broker/core"
	"broker/frontends/access"
)

// Credentials are what a front-end accepts with AUTH.
type Credentials struct {
	Password string          // empty: none is required
	Access   *access.Control // finds principals by their tokens; nil: there are none
}

// Login is the answer to AUTH.
type Login struct {
	Principal *access.Principal // nil: the client knows the password, or none is needed
	Refusal   string            // empty: the client is let in
	HangUp    bool              // too many logins have failed
}

// Auth checks a password or token. A name that is given with a token must be the principal's. from is the client's address.
func (c Credentials) Auth(name, given, from string, now core.Instant) Login {
	if c.Access != nil {
		if p := c.Access.ByToken(given); p != nil && (name == "" || name == p.Name()) {
			return Login{Principal: p}
		}
	}
	named := name != "" && name != "default"
	switch {
	case c.Password == "" && (c.Access == nil || !c.Access.Enabled()):
		if name == "default" { // as Redis has it, any password of a user without one is right
			return Login{}
		}
		if !named {
			return Login{Refusal: "ERR AUTH <password> called without any password configured for the default user. " +
				"Are you sure your configuration is correct?"}
		}
	case c.Password != "" && !named && access.SamePassword(given, c.Password):
		return Login{}
	}
	return Login{
		Refusal: "WRONGPASS invalid username-password pair or user is disabled.",
		HangUp:  c.Access.Logins().Failed(from, name, now) > 0,
	}
}
