package frontends

import (
	"crypto/x509"

	"broker/core"
	"broker/frontends/access"
)

// CertifiedConn is a Conn that may know who its peer is.
type CertifiedConn interface {
	// PeerCertificate is the verified certificate of the client; nil if it has shown none. On the loop only.
	PeerCertificate() *x509.Certificate
}

// OpenClient opens the broker's client for a connection. login is the principal whose password the client knows; nil: it has
// shown none.
func OpenClient(b core.Broker, p core.Protocol, c Conn, login *access.Principal) core.ClientID {
	o := core.ClientOptions{Protocol: p, Wake: c.Wake, Close: c.Abort}
	if a := c.RemoteAddr(); a != nil {
		o.Address = a.String()
	}
	return access.Admit(b, o, access.Credentials{Certificate: PeerCertificate(c), Login: login})
}

// PeerCertificate is the verified certificate of a connection's client; nil if there is none.
func PeerCertificate(c Conn) *x509.Certificate {
	if certified, ok := c.(CertifiedConn); ok {
		return certified.PeerCertificate()
	}
	return nil
}
