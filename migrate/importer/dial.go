package importer

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// dialTimeout limits the time to connect.
const dialTimeout = 10 * time.Second

// replyTimeout limits the time for a reply.
const replyTimeout = time.Minute

// promptConn is a connection to a server that replies at once.
type promptConn struct {
	net.Conn
	begun bool // data has arrived
}

// errHTTP means that a server speaks HTTP, so the port is a wrong one.
var errHTTP = errors.New("the port speaks HTTP; name the port of the server's own protocol")

// Read implements net.Conn. It fails if no data arrives within replyTimeout.
func (c *promptConn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(replyTimeout)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	if n > 0 && !c.begun {
		c.begun = true
		if bytes.HasPrefix(b[:n], []byte("HTTP/")) {
			return 0, errHTTP
		}
	}
	return n, err
}

// sideError is an error of one of the two servers.
type sideError struct {
	side string
	err  error
}

// Error implements error.
func (e *sideError) Error() string { return e.side + ": " + e.err.Error() }

// Unwrap is for errors.Is and errors.As.
func (e *sideError) Unwrap() error { return e.err }

// atSource marks an error as one of the source, unless a side is named already.
func atSource(err error) error { return atSide("source", err) }

// atBroker marks an error as one of this broker.
func atBroker(err error) error { return atSide("this broker", err) }

func atSide(side string, err error) error {
	if named := (*sideError)(nil); err == nil || errors.As(err, &named) {
		return err
	}
	return &sideError{side, err}
}

// Servers are the two servers of an import.
type Servers struct {
	Source string
	Target string      // this broker's port for the source's protocol
	TLS    *tls.Config // for addresses that ask for TLS; nil: the defaults
}

// tlsSchemes are the schemes of addresses that ask for TLS, as clients of Faktory, Redis and others write them.
var tlsSchemes = []string{"tcp+tls", "tls", "rediss"}

// UseTLS reports whether one of the addresses asks for TLS.
func (s *Servers) UseTLS() bool { return asksForTLS(s.Source) || asksForTLS(s.Target) }

func asksForTLS(address string) bool {
	scheme, _, is := strings.Cut(address, "://")
	return is && slices.Contains(tlsSchemes, strings.ToLower(scheme))
}

// dial connects to a server that replies at once. It returns the address as a URL, for its password.
func (s *Servers) dial(address, defaultPort string) (net.Conn, *url.URL, error) {
	conn, u, err := s.dialPatient(address, defaultPort)
	if err != nil {
		return nil, nil, err
	}
	return &promptConn{Conn: conn}, u, nil
}

// dialPatient connects to an address: HOST, HOST:PORT, a URL with a host, or unix:PATH.
func (s *Servers) dialPatient(address, defaultPort string) (net.Conn, *url.URL, error) {
	if path, isUnix := strings.CutPrefix(address, "unix:"); isUnix {
		conn, err := net.DialTimeout("unix", strings.TrimPrefix(path, "//"), dialTimeout)
		return conn, &url.URL{}, err
	}
	text := address
	if !strings.Contains(text, "://") {
		text = "tcp://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return nil, nil, notAnAddress(address)
	}
	host, dialer := net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), defaultPort)), &net.Dialer{Timeout: dialTimeout}
	if asksForTLS(text) {
		conn, err := tls.DialWithDialer(dialer, "tcp", host, s.TLS)
		if err != nil { // not a nil *tls.Conn
			return nil, nil, fmt.Errorf("TLS with %s: %w", host, err)
		}
		return conn, u, nil
	}
	conn, err := dialer.Dial("tcp", host)
	if err != nil {
		return nil, nil, err
	}
	return conn, u, nil
}

// notAnAddress is the error for an address. It leaves out what may be a password.
func notAnAddress(address string) error {
	if at := strings.LastIndexByte(address, '@'); at >= 0 {
		return fmt.Errorf(
			"the address of %q is invalid: special characters of a password must be written as %%XX, such as %%40 for @",
			address[at+1:])
	}
	return fmt.Errorf("%q is not an address: expected HOST:PORT, a URL or unix:/path", address)
}

// ErrNoBroker means that nothing accepts connections at this broker's port.
var ErrNoBroker = errors.New("no broker answers")

// dialBroker connects to this broker.
func (s *Servers) dialBroker(port string) (net.Conn, *url.URL, error) {
	conn, u, err := s.dial(s.Target, port)
	if refused := (*net.OpError)(nil); errors.As(err, &refused) && refused.Op == "dial" {
		err = fmt.Errorf("%w: %w; name its port with --to", ErrNoBroker, err)
	}
	return conn, u, atBroker(err)
}

// dialBoth connects to the source and to this broker.
func (s *Servers) dialBoth(port string) (from, to net.Conn, urls [2]*url.URL, err error) {
	from, urls[0], err = s.dial(s.Source, port)
	if err != nil {
		return nil, nil, urls, atSource(err)
	}
	to, urls[1], err = s.dialBroker(port)
	if err != nil {
		_ = from.Close() // nothing was sent
		return nil, nil, urls, err
	}
	if from.RemoteAddr().String() == to.RemoteAddr().String() &&
		from.RemoteAddr().Network() == to.RemoteAddr().Network() {
		_, _ = from.Close(), to.Close() // nothing was sent
		return nil, nil, urls, fmt.Errorf("source and target are both %s: an import would never end", from.RemoteAddr())
	}
	return from, to, urls, nil
}
