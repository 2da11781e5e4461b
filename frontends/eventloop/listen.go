package eventloop

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Keepalive finds a dead peer host in about two minutes; until then it may hold leases that belong to its connection.
const (
	keepaliveIdle     = 60 * time.Second
	keepaliveInterval = 10 * time.Second
	keepaliveCount    = 6
)

var keepalive = net.KeepAliveConfig{
	Enable: true, Idle: keepaliveIdle, Interval: keepaliveInterval, Count: keepaliveCount,
}

// Listener is one place where a front-end is reached. Several may share a name, and so a front-end.
type Listener struct {
	Name    string // of the front-end
	Network string // "tcp" or "unix"
	Address string // host:port, or the path of the socket

	// TLS gives the configuration for the next connection, so that certificates can be replaced while running; nil:
	// plain.
	TLS func() *tls.Config

	// Allow lists the networks whose clients are let in; nil: all. Denied is told of the others, from the goroutine that
	// accepts; nil: nobody is.
	Allow  []netip.Prefix
	Denied func(net.Addr)
}

// bound is a Listener with its socket. A host name with several addresses makes several of them.
type bound struct {
	Listener
	ln net.Listener
}

// Bind takes all addresses, or none and an error that names each one that could not be had and its front-end. Clients
// may connect from then on; they are answered once Serve was called.
func Bind(listeners []Listener) (*Server, error) {
	s := newServer()
	var errs []error
	for _, l := range listeners {
		lns, err := l.Open()
		for _, ln := range lns {
			s.bound = append(s.bound, bound{Listener: l, ln: ln})
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		s.StopAccepting()
		return nil, errors.Join(errs...)
	}
	return s, nil
}

// Open opens the sockets of l, all or none. Bind does it for those that Serve shall serve; others may be served by
// whoever opens them.
func (l Listener) Open() ([]net.Listener, error) {
	lns, err := l.listen()
	if err == nil {
		if l.Allow != nil {
			for i, ln := range lns {
				lns[i] = &allowListener{Listener: ln, allow: l.Allow, denied: l.Denied}
			}
		}
		return lns, nil
	}
	for _, ln := range lns {
		_ = ln.Close() // nobody has used it
	}
	return nil, fmt.Errorf("listen %s %s: %w", l.Name, l.Address, cause(err))
}

// listen opens what it can until the first that it cannot.
func (l Listener) listen() ([]net.Listener, error) {
	if l.Network == "unix" {
		ln, err := listenUnix(l.Address)
		if err != nil {
			return nil, err
		}
		return []net.Listener{ln}, nil
	}
	addresses, err := resolve(l.Address)
	if err != nil {
		return nil, err
	}
	lc := net.ListenConfig{KeepAliveConfig: keepalive}
	var lns []net.Listener
	var skipped error
	for _, address := range addresses {
		ln, err := lc.Listen(context.Background(), "tcp", address)
		switch {
		case err == nil:
			lns = append(lns, ln)
		case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EAFNOSUPPORT):
			skipped = err // a name may have addresses of a kind that this host does not speak
		default:
			return lns, err
		}
	}
	if len(lns) == 0 {
		return nil, skipped
	}
	return lns, nil
}

// resolve finds every address that a host name stands for. A wildcard, a literal address, and any name with port 0
// (which would be another port for each) give one.
func resolve(address string) ([]string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if host == "" || net.ParseIP(host) != nil || port == "0" {
		return []string{address}, nil
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return nil, fmt.Errorf("port %q is not between 0 and 65535", port)
	}
	ips, err := net.DefaultResolver.LookupIPAddr(context.Background(), host)
	if err != nil {
		return nil, err
	}
	addresses := make([]string, 0, len(ips))
	for _, ip := range ips {
		addresses = append(addresses, net.JoinHostPort(ip.String(), port))
	}
	return addresses, nil
}

// listenUnix takes the path; a socket that a dead process has left there is removed, one that answers is not, nor is
// any other kind of file.
func listenUnix(path string) (net.Listener, error) {
	ln, err := net.Listen("unix", path)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return ln, err
	}
	if info, statErr := os.Lstat(path); statErr == nil && info.Mode()&os.ModeSocket == 0 {
		return nil, errors.New("the path exists and is no socket")
	}
	c, dialErr := net.DialTimeout("unix", path, time.Second)
	if dialErr == nil {
		_ = c.Close() // it has told what we wanted to know
		return nil, err
	}
	if !errors.Is(dialErr, syscall.ECONNREFUSED) {
		return nil, err
	}
	if err := os.Remove(path); err != nil {
		return nil, err
	}
	return net.Listen("unix", path)
}

// reason is the innermost cause of a network error: its other layers repeat what Bind says itself.
func cause(err error) error {
	var sys *os.SyscallError
	if errors.As(err, &sys) {
		return sys.Err
	}
	var addr *net.AddrError
	if errors.As(err, &addr) {
		return errors.New(addr.Err)
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return errors.New(dns.Err)
	}
	return err
}
