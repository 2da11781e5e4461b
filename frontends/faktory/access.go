package faktory

import (
	"broker/access"
	"broker/core"
)

// allowed reports whether the client has a role for all queues. If not, it answers the request with an error.
func (s *session) allowed(r access.Role) bool {
	if s.Allowed(r) {
		return true
	}
	s.fail(core.ErrForbidden, "", 0)
	return false
}

// allowedForAll is allowed for some queues, given by the names that clients use.
func (s *session) allowedForAll(r access.Role, names []string) bool {
	for _, name := range names {
		if !s.AllowedFor(r, s.front.opts.Namespace+name) {
			s.fail(core.ErrForbidden, "", 0)
			return false
		}
	}
	return true
}

// noteChange reports a change for the audit log.
func (s *session) noteChange(action, target string) {
	s.Note(s.front.opts.Audit, access.Change{Action: action, Target: target})
}
