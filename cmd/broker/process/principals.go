package process

import (
	"broker/access"
)

// auditChange records in the audit log a change that a client made over a wire protocol.
func (t *term) auditChange(c access.Change) {
	if t.service != nil {
		t.service.Note(c)
	}
}

// hidden is shown in place of a secret.
const hidden = "(hidden)"
