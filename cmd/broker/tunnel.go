package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"broker/core/replica"
)

// httpFrontend is the name by which nodes pass on requests to the HTTP port.
const httpFrontend = "http"

// Headers in which a node passes on who makes a request. They count on connections between nodes only, and are removed from
// all other requests.
const (
	relayAddress = "Broker-Relay-Address"
	relayCert    = "Broker-Relay-Certificate"
)

// tunnelListener is a net.Listener of the connections that other nodes open for requests.
type tunnelListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newTunnelListener() *tunnelListener {
	return &tunnelListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *tunnelListener) pass(conn net.Conn) {
	select {
	case l.conns <- tunnelConn{conn}:
	case <-l.closed:
		_ = conn.Close() // never used
	}
}

// Accept implements net.Listener.
func (l *tunnelListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *tunnelListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *tunnelListener) Addr() net.Addr { return tunnelAddr{} }

// tunnelAddr is the local address of connections between nodes.
type tunnelAddr struct{}

// Network implements net.Addr.
func (tunnelAddr) Network() string { return "tunnel" }

func (tunnelAddr) String() string { return "tunnel" }

// tunnelConn marks a connection as one between nodes.
type tunnelConn struct{ net.Conn }

// LocalAddr implements net.Conn.
func (tunnelConn) LocalAddr() net.Addr { return tunnelAddr{} }

// localPaths are answered by every node for itself.
func isLocalPath(r *http.Request) bool {
	switch r.URL.Path {
	case "/healthz", "/readyz", "/metrics":
		return true
	case "/api/v1/cluster":
		return r.Method == http.MethodGet || r.Method == http.MethodHead
	}
	return strings.HasPrefix(r.URL.Path, "/debug/")
}

// forwarding passes requests on to the leader, unless this node leads or the request is about this node.
func (k *clusterNode) forwarding(own http.Handler) http.Handler {
	proxy := k.reverseProxy()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, tunneled := r.Context().Value(http.LocalAddrContextKey).(tunnelAddr); tunneled {
			own.ServeHTTP(w, asClient(r))
			return
		}
		r.Header.Del(relayAddress)
		r.Header.Del(relayCert)
		if isLocalPath(r) || k.gate.current() != nil || !k.awaitLeader(r.Context()) {
			own.ServeHTTP(w, r) // without a leader the answer is that the broker is starting
			return
		}
		if k.gate.current() != nil {
			own.ServeHTTP(w, r)
			return
		}
		c := http.NewResponseController(w)
		_ = c.SetWriteDeadline(time.Time{}) // the leader's count
		_ = c.SetReadDeadline(time.Time{})
		proxy.ServeHTTP(w, r)
	})
}

// awaitLeader waits a moment for a leader that serves clients.
func (k *clusterNode) awaitLeader(ctx context.Context) bool {
	deadline := time.Now().Add(leaderWait / 2)
	for {
		node := k.node.Load()
		switch {
		case k.gate.current() != nil:
			return true
		case node != nil && node.LeaderID() != "" && node.Ready(ctx):
			return true
		case time.Now().After(deadline) || ctx.Err() != nil || node == nil:
			return false
		}
		time.Sleep(leaderRetry)
	}
}

// asClient makes a request that another node has passed on look like its client's.
func asClient(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	if from := r.Header.Get(relayAddress); from != "" {
		r.RemoteAddr = from
	}
	if der, err := base64.StdEncoding.DecodeString(r.Header.Get(relayCert)); err == nil && len(der) > 0 {
		if cert, err := x509.ParseCertificate(der); err == nil { // verified by the node that passes it on
			r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{cert}}, PeerCertificates: []*x509.Certificate{cert}}
		}
	}
	r.Header.Del(relayAddress)
	r.Header.Del(relayCert)
	return r
}

// reverseProxy sends requests to the leader over connections between nodes.
func (k *clusterNode) reverseProxy() *httputil.ReverseProxy {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			node := k.node.Load()
			if node == nil {
				return nil, replica.ErrNoLeader
			}
			return node.DialLeader(ctx, httpFrontend, "")
		},
		MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, DisableCompression: true,
	}
	k.dropIdle = transport.CloseIdleConnections
	return &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host = "http", "leader"
			p.Out.Host = p.In.Host
			p.Out.Header.Set(relayAddress, p.In.RemoteAddr)
			if p.In.TLS != nil && len(p.In.TLS.VerifiedChains) > 0 {
				p.Out.Header.Set(relayCert, base64.StdEncoding.EncodeToString(p.In.TLS.VerifiedChains[0][0].Raw))
			}
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, _ error) {
			w.Header().Set("Retry-After", "1")
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"status":503,"code":"no_leader","title":"Service Unavailable",` +
				`"detail":"the leader of the cluster does not answer; ask again"}` + "\n")) // the client has left: nobody to tell
		},
	}
}
