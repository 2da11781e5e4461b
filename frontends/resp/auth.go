package resp

import (
	"broker/core"
	"broker/frontends/access"
)

// Credentials are the passwords and tokens that a front-end accepts with AUTH.
type Credentials struct {
	Password string          // empty: no password is required
	Access   *access.Control // finds principals by their tokens; nil: no principals
}

// Login is the result of AUTH.
type Login struct {
	Principal *access.Principal // nil: the client knows the password, or none is needed
	Refusal   string            // empty: the client is accepted
	HangUp    bool              // too many logins have failed
}

// Auth checks a password or token. If the client gives a name with a token, it must be the name of the token's principal. from
// is the client's address.
func (c Credentials) Auth(name, given, from string, now core.Instant) Login {
	if c.Access != nil {
		if p := c.Access.ByToken(given); p != nil && (name == "" || name == p.Name()) {
			return Login{Principal: p}
		}
	}
	named := name != "" && name != "default"
	switch {
	case c.Password == "" && (c.Access == nil || !c.Access.Enabled()):
		if name == "default" { // as in Redis, a user without a password may give any password
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
