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

// TCP keepalive detects a dead peer in about two minutes. Until then its connection may hold leases.
const (
	keepaliveIdle     = 60 * time.Second
	keepaliveInterval = 10 * time.Second
	keepaliveCount    = 6
)

var keepalive = net.KeepAliveConfig{
	Enable: true, Idle: keepaliveIdle, Interval: keepaliveInterval, Count: keepaliveCount,
}

// Listener is one address of a front-end. Several listeners may share a name and thus a front-end.
type Listener struct {
	Name    string // name of the front-end
	Network string // "tcp" or "unix"
	Address string // host:port, or the path of the socket

	// Socket is a listening socket that another process has bound, such as systemd; nil: Open binds Address. It stays
	// open across restarts of the broker, so that clients wait instead of failing.
	Socket *os.File

	// TLS returns the configuration for the next connection, so that certificates can be replaced at run time; nil: no
	// TLS. It returns the same configuration until the certificates change, because clients can only resume TLS
	// sessions of the same configuration.
	TLS func() *tls.Config

	// Allow lists the networks whose clients may connect; nil: all. Denied, if set, is called for every refused client
	// with its address, from the accepting goroutine.
	Allow  []netip.Prefix
	Denied func(net.Addr)
}

// bound is a Listener with its socket. A host name with several addresses has several sockets.
type bound struct {
	Listener
	ln net.Listener
}

// Bind binds all addresses, or none: then the error names each address that failed and its front-end. From then on
// clients may connect. They are served once Serve is called.
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

// Open opens the sockets of l, all or none. Bind calls it. A caller may also call it directly and serve the sockets
// itself.
func (l Listener) Open() ([]net.Listener, error) {
	lns, err := l.listen()
	if err == nil {
		if l.Allow != nil {
			for i, ln := range lns {
				lns[i] = &allowListener{ln, l}
			}
		}
		return lns, nil
	}
	for _, ln := range lns {
		_ = ln.Close() // never used
	}
	return nil, fmt.Errorf("listen %s %s: %w", l.Name, l.Address, cause(err))
}

// listen opens the sockets one by one and stops at the first error.
func (l Listener) listen() ([]net.Listener, error) {
	if l.Socket != nil {
		ln, err := inherit(l.Socket)
		if err != nil {
			return nil, err
		}
		return []net.Listener{ln}, nil
	}
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
			skipped = err // a name may have addresses of a family that this host does not support
		default:
			return lns, err
		}
	}
	if len(lns) == 0 {
		return nil, skipped
	}
	return lns, nil
}

// inherit listens on a socket that another process has bound.
func inherit(socket *os.File) (net.Listener, error) {
	ln, err := net.FileListener(socket) // a duplicate: closing it does not close the socket
	if err != nil {
		return nil, err
	}
	if tcp, ok := ln.(*net.TCPListener); ok {
		return keepaliveListener{tcp}, nil
	}
	return ln, nil
}

// keepaliveListener sets TCP keepalive on the connections of an inherited socket, as net.ListenConfig does for others.
type keepaliveListener struct{ *net.TCPListener }

func (l keepaliveListener) Accept() (net.Conn, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	_ = c.SetKeepAliveConfig(keepalive) // fails only for a connection that is gone, as its first read will tell
	return c, nil
}

// resolve returns every address of a host name. A wildcard, a literal address, and any name with port 0 (which would be
// a different port for each address) stay one address.
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

// listenUnix listens on the path. It removes a socket that a dead process left there, but neither a socket that accepts
// connections nor any other kind of file.
func listenUnix(path string) (net.Listener, error) {
	ln, err := net.Listen("unix", path)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return ln, err
	}
	if info, statErr := os.Lstat(path); statErr == nil && info.Mode()&os.ModeSocket == 0 {
		return nil, errors.New("the path exists and is not a socket")
	}
	c, dialErr := net.DialTimeout("unix", path, time.Second)
	if dialErr == nil {
		_ = c.Close() // another process is listening
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

// cause returns the innermost cause of a network error. The outer layers repeat the text of Bind's error.
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
