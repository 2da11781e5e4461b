package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"broker/core"
)

// Entry is a principal as it is configured.
type Entry struct {
	Name            string
	TokenSHA256     [sha256.Size]byte // of the bearer token; zero: none
	TLSSubject      string            // subject or common name of the client certificate; empty: none
	FaktoryPassword string            // empty: none
	SQSAccessKey    string            // signs requests, together with SQSSecretKey; empty: none
	SQSSecretKey    string
	Grants          []Grant
}

// sameSecrets reports whether two entries of a name have the same credentials.
func (e *Entry) sameSecrets(other *Entry) bool {
	return e.TokenSHA256 == other.TokenSHA256 && e.TLSSubject == other.TLSSubject &&
		e.FaktoryPassword == other.FaktoryPassword && e.SQSAccessKey == other.SQSAccessKey &&
		e.SQSSecretKey == other.SQSSecretKey
}

// HashToken returns the hash of a token. Only hashes are stored.
func HashToken(token string) [sha256.Size]byte { return sha256.Sum256([]byte(token)) }

// ParseTokenHash reads "sha256:" and 64 hexadecimal digits.
func ParseTokenHash(text string) (sum [sha256.Size]byte, err error) {
	digits, found := strings.CutPrefix(text, "sha256:")
	hash, err := hex.DecodeString(digits)
	if !found || err != nil || len(hash) != len(sum) {
		return sum, fmt.Errorf("a token hash is sha256: and 64 hexadecimal digits")
	}
	return [sha256.Size]byte(hash), nil
}

// Control finds principals by their credentials. Any goroutine may use it; the zero value knows no principals.
type Control struct {
	mu    sync.Mutex // held by Load
	table atomic.Pointer[table]

	refused [len(core.Protocols)]atomic.Uint64
	logins  Logins
}

// Logins counts the failed logins of all ports. It is nil if c is nil.
func (c *Control) Logins() *Logins {
	if c == nil {
		return nil
	}
	return &c.logins
}

// table holds the principals of one load of the settings.
type table struct {
	byName    map[string]*Principal
	entries   map[string]*Entry // by name
	byToken   map[[sha256.Size]byte]*Principal
	bySubject map[string]*Principal
	passwords []password
	byKey     map[string]keyHolder
}

// keyHolder is a principal and the secret of its key.
type keyHolder struct {
	principal *Principal
	secret    string
}

type password struct {
	text      string
	principal *Principal
}

// Load replaces the entries. A Principal stands for one version of its credentials: every login, cookie and stream
// keeps the Principal that it was admitted as. So a principal that is no longer listed, or whose credentials have
// changed, loses all rights, and clients that show the new credentials are another Principal of that name.
func (c *Control) Load(entries []Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.table.Load()
	fresh := &table{
		byName: make(map[string]*Principal), entries: make(map[string]*Entry),
		byToken:   make(map[[sha256.Size]byte]*Principal),
		bySubject: make(map[string]*Principal), byKey: make(map[string]keyHolder),
	}
	for _, e := range entries {
		p := newPrincipal(e.Name, e.Grants)
		if known := old.named(e.Name); known != nil && e.sameSecrets(old.entries[e.Name]) {
			known.grants.Store(&e.Grants)
			p = known
		}
		fresh.byName[e.Name], fresh.entries[e.Name] = p, &e
		if e.TokenSHA256 != ([sha256.Size]byte{}) {
			fresh.byToken[e.TokenSHA256] = p
		}
		if e.TLSSubject != "" {
			fresh.bySubject[e.TLSSubject] = p
		}
		if e.SQSAccessKey != "" {
			fresh.byKey[e.SQSAccessKey] = keyHolder{p, e.SQSSecretKey}
		}
		if e.FaktoryPassword != "" {
			fresh.passwords = append(fresh.passwords, password{e.FaktoryPassword, p})
		}
	}
	if old != nil {
		for name, p := range old.byName {
			if fresh.byName[name] != p {
				p.grants.Store(&[]Grant{})
			}
		}
	}
	c.table.Store(fresh)
}

func (t *table) named(name string) *Principal {
	if t == nil {
		return nil
	}
	return t.byName[name]
}

// Enabled reports whether principals are configured. A nil Control has none.
func (c *Control) Enabled() bool {
	if c == nil {
		return false
	}
	t := c.table.Load()
	return t != nil && len(t.byName) > 0
}

// Default is the principal of a client without credentials: the principal with that name if it exists, Everyone if no
// principals are configured, else Nobody.
func (c *Control) Default(name string) *Principal {
	if !c.Enabled() {
		return Everyone
	}
	if p := c.table.Load().byName[name]; p != nil {
		return p
	}
	return Nobody
}

// Revoked reports whether a reload has ended what a client was admitted as: it was Everyone before the first principals
// were added, or its principal is no longer listed or has other credentials now.
func (c *Control) Revoked(p *Principal) bool {
	if p == Everyone {
		return c.Enabled()
	}
	if c == nil || p == nil || IsReserved(p.Name()) { // no entry of the settings
		return false
	}
	t := c.table.Load()
	return t != nil && t.byName[p.Name()] != p
}

// HasPasswords reports whether a principal has a Faktory password.
func (c *Control) HasPasswords() bool {
	t := c.table.Load()
	return t != nil && len(t.passwords) > 0
}

// HasSQSKeys reports whether a principal has a key for signatures.
func (c *Control) HasSQSKeys() bool {
	t := c.table.Load()
	return t != nil && len(t.byKey) > 0
}

// BySQSKey finds a principal by its access key; nil if there is none. secret is the key that signs its requests.
func (c *Control) BySQSKey(key string) (p *Principal, secret string) {
	t := c.table.Load()
	if t == nil {
		return nil, ""
	}
	holder := t.byKey[key]
	return holder.principal, holder.secret
}

// CountRefusal counts a request that a client of the protocol was not allowed to make.
func (c *Control) CountRefusal(p core.Protocol) { c.refused[p].Add(1) }

// Refusals is the number of calls of CountRefusal for a protocol.
func (c *Control) Refusals(p core.Protocol) uint64 { return c.refused[p].Load() }

// ByToken finds a principal by its token; nil if there is none.
func (c *Control) ByToken(token string) *Principal {
	t := c.table.Load()
	if t == nil || token == "" {
		return nil
	}
	return t.byToken[HashToken(token)]
}

// ByCertificate finds a principal by the subject of a verified certificate, else by its common name; nil if there is
// none.
func (c *Control) ByCertificate(cert *x509.Certificate) *Principal {
	t := c.table.Load()
	if t == nil || cert == nil {
		return nil
	}
	if p := t.bySubject[cert.Subject.String()]; p != nil {
		return p
	}
	if cert.Subject.CommonName == "" {
		return nil
	}
	return t.bySubject[cert.Subject.CommonName]
}

// ByPassword finds the principal whose Faktory password satisfies prove; nil if there is none. It tries all passwords,
// so that the time reveals nothing.
func (c *Control) ByPassword(prove func(password string) bool) (found *Principal) {
	t := c.table.Load()
	if t == nil {
		return nil
	}
	for _, p := range t.passwords {
		if prove(p.text) {
			found = p.principal
		}
	}
	return found
}

// SamePassword compares in constant time.
func SamePassword(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
