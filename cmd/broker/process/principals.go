package process

import (
	"broker/access"
	"broker/config"
)

// principalEntries returns the principals of the validated settings.
func principalEntries(c *config.Config) []access.Entry {
	entries := make([]access.Entry, len(c.Principals))
	for i, p := range c.Principals {
		e := &entries[i]
		e.Name, e.TLSSubject, e.FaktoryPassword = p.Name, p.TLSSubject, p.FaktoryPassword
		e.SQSAccessKey, e.SQSSecretKey = p.SQSAccessKey, p.SQSSecretKey
		if p.Token != "" {
			sum, err := access.ParseTokenHash(p.Token)
			if err != nil {
				panic(err)
			}
			e.TokenSHA256 = sum
		}
		for _, role := range p.Roles {
			g, err := access.ParseGrant(role)
			if err != nil {
				panic(err)
			}
			e.Grants = append(e.Grants, g)
		}
	}
	return entries
}

// loadPrincipals applies the principals of the settings.
func (p *Process) loadPrincipals() {
	p.access.Load(principalEntries(&p.config))
}

// auditChange records in the audit log a change that a client made over a wire protocol.
func (t *term) auditChange(c access.Change) {
	if t.service != nil {
		t.service.Note(c)
	}
}

// hidden is shown in place of a secret.
const hidden = "(hidden)"
