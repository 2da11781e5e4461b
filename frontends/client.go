package frontends

import (
	"crypto/x509"

	"broker/access"
	"broker/core"
)

// CertifiedConn is a Conn whose client may have sent a certificate.
type CertifiedConn interface {
	// PeerCertificate is the verified certificate of the client; nil if there is none. Call it on the loop only.
	PeerCertificate() *x509.Certificate
}

// OpenClient opens the broker's client for a connection. login is the principal whose password the client has shown;
// nil: none.
func OpenClient(b *access.Guard, c Conn, login *access.Principal) core.ClientID {
	o := core.ClientOptions{Wake: c.Wake, Close: c.Abort}
	if a := c.RemoteAddr(); a != nil {
		o.Address = a.String()
	}
	return b.Admit(o, access.Credentials{Certificate: PeerCertificate(c), Login: login})
}

// PeerCertificate is the verified certificate of a connection's client; nil if there is none.
func PeerCertificate(c Conn) *x509.Certificate {
	if certified, ok := c.(CertifiedConn); ok {
		return certified.PeerCertificate()
	}
	return nil
}
