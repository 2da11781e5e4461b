package relay

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"slices"
	"sync/atomic"
	"time"

	"broker/frontends/shared/httpserver"
)

// HTTP is the front-end name of requests.
const HTTP = "http"

// errNotMember is never shown; the client gets the error for a missing leader.
var errNotMember = errors.New("this node is not a member of a cluster yet")

// Headers with the identity of a request's client. They are only trusted on connections between nodes, and removed from
// all other requests.
const (
	relayAddress = "Broker-Relay-Address"
	relayCert    = "Broker-Relay-Certificate"
)

// Tunnel is a listener for the connections that other nodes open for requests. The HTTP server serves it in addition to
// its own sockets.
func (g *Gateway) Tunnel() net.Listener { return g.tunnel }

// Handlers serve requests at a node.
type Handlers struct {
	Own      http.Handler // with what the node has itself
	OverLink http.Handler // over the link to the leader
	HomeOf   func(*http.Request) httpserver.Home
}

// Handler serves requests at the home of each, and passes those on that are served at another leader than this node.
func (g *Gateway) Handler(h Handlers) http.Handler {
	proxy := g.reverseProxy()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, tunneled := r.Context().Value(http.LocalAddrContextKey).(tunnelAddr); tunneled {
			h.Own.ServeHTTP(w, asClient(r))
			return
		}
		r.Header.Del(relayAddress)
		r.Header.Del(relayCert)
		switch g.wayOf(r, h.HomeOf) {
		case wayOwn:
			h.Own.ServeHTTP(w, r)
			return
		case wayLink:
			h.OverLink.ServeHTTP(w, r)
			return
		case wayProxy:
		}
		g.requests.Add(1)
		c := http.NewResponseController(w)
		_ = c.SetWriteDeadline(time.Time{}) // the deadlines of the leader apply
		_ = c.SetReadDeadline(time.Time{})
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			r = noteReached(r)
		}
		if r.ContentLength != 0 {
			body := &upload{ReadCloser: r.Body, control: c}
			w, r.Body = &passedReply{w, body}, body
		}
		proxy.ServeHTTP(w, r)
	})
}

// upload is the body of a request that is passed on. Nothing more of it is read once the reply begins: the leader may
// refuse a request before its body has come, and net/http would wait for the rest before it sends the reply.
type upload struct {
	io.ReadCloser
	control *http.ResponseController
	ended   atomic.Bool // read to its end
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	if err != nil {
		u.ended.Store(true)
	}
	return n, err
}

// Close implements io.Closer.
func (u *upload) Close() error {
	u.stop()
	return u.ReadCloser.Close()
}

// stop ends the read in progress and all later ones.
func (u *upload) stop() {
	if !u.ended.Load() {
		_ = u.control.SetReadDeadline(time.Now())
	}
}

// passedReply is the reply to a request with a body.
type passedReply struct {
	http.ResponseWriter
	body *upload
}

// WriteHeader implements http.ResponseWriter.
func (w *passedReply) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.body.stop()
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *passedReply) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// way is how a request gets its reply.
type way uint8

const (
	wayOwn way = iota
	wayLink
	wayProxy
)

// wayOf waits a moment until a request can be served: for a leader, for the node's link to it if the request may go
// over that, and before that for this node to be a member, since its sockets are open earlier. Without a leader, the
// node's own reply is that the broker is starting.
func (g *Gateway) wayOf(r *http.Request, homeOf func(*http.Request) httpserver.Home) way {
	now := g.current()
	if now.server != nil {
		return wayOwn
	}
	home := homeOf(r)
	if home == httpserver.AtEach {
		return wayOwn
	}
	began, patience := time.Now(), patienceOf(r)
	for ; ; now = g.current() {
		waited := time.Since(began)
		switch {
		case now.server != nil:
			return wayOwn
		case home == httpserver.AtNode && now.sessions != nil && slices.Contains(now.served, HTTP):
			return wayLink
		case home == httpserver.AtNode && now.linking && waited < linkWait: // the link comes first
		case now.node != nil && now.node.LeaderID() != "" && now.node.Ready(r.Context()):
			return wayProxy
		}
		if waited >= patience || r.Context().Err() != nil || now.closed {
			return wayOwn
		}
		wait(r.Context(), now.changed)
	}
}

// patienceOf is how long a request waits for a leader. Those that say how the cluster is do not: the page of the
// cluster, which this node shows without a leader, and the stream by which open pages notice that there is none.
func patienceOf(r *http.Request) time.Duration {
	if r.Method == http.MethodGet && (r.URL.Path == "/cluster" || r.URL.Path == "/live") {
		return 0
	}
	return leaderWait / 2
}

// asClient restores the client's identity in a request from another node.
func asClient(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	if from := r.Header.Get(relayAddress); from != "" {
		r.RemoteAddr = from
	}
	if der, err := base64.StdEncoding.DecodeString(r.Header.Get(relayCert)); err == nil && len(der) > 0 {
		if cert, err := x509.ParseCertificate(der); err == nil { // verified by the node that passes it on
			r.TLS = &tls.ConnectionState{
				VerifiedChains: [][]*x509.Certificate{{cert}}, PeerCertificates: []*x509.Certificate{cert},
			}
		}
	}
	r.Header.Del(relayAddress)
	r.Header.Del(relayCert)
	return r
}

// newTransport opens connections to the leader for requests.
func (g *Gateway) newTransport() *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			now := g.current()
			switch {
			case now.node == nil:
				return nil, errNotMember
			case now.server != nil: // a stream that began at another leader
				near, far := net.Pipe()
				go g.tunnel.pass(far) // ends once the server has the connection
				return near, nil
			}
			return now.node.DialLeader(ctx, HTTP, "")
		},
		MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, DisableCompression: true,
	}
}

// reverseProxy sends requests to the leader over connections between nodes.
func (g *Gateway) reverseProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport:     g.transport,
		FlushInterval: -1, ModifyResponse: g.outlives,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host = "http", "leader"
			p.Out.Host = p.In.Host
			p.Out.Header.Set(relayAddress, p.In.RemoteAddr)
			if p.In.TLS != nil && len(p.In.TLS.VerifiedChains) > 0 {
				p.Out.Header.Set(relayCert, base64.StdEncoding.EncodeToString(p.In.TLS.VerifiedChains[0][0].Raw))
			}
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, _ error) {
			status, text := http.StatusServiceUnavailable, noAnswer
			if mayHaveChanged(r) {
				status, text = http.StatusGatewayTimeout, unknownOutcome
			} else {
				w.Header().Set("Retry-After", "1")
			}
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text + "\n")) // fails if the client has disconnected
		},
	}
}

// The replies to requests that the leader has not answered.
const (
	noAnswer = `{"status":503,"code":"no_leader","title":"Service Unavailable",` +
		`"detail":"the leader of the cluster does not answer; ask again"}`
	unknownOutcome = `{"status":504,"code":"outcome_unknown","title":"Gateway Timeout",` +
		`"detail":"outcome unknown: the leader of the cluster has not answered, and the change may still apply"}`
)

// reachedKey is the key of a context's *atomic.Bool: a connection to the leader was there for the request.
type reachedKey struct{}

// noteReached makes mayHaveChanged work for a request that changes something.
func noteReached(r *http.Request) *http.Request {
	reached := &atomic.Bool{}
	return r.WithContext(httptrace.WithClientTrace(context.WithValue(r.Context(), reachedKey{}, reached),
		&httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { reached.Store(true) }}))
}

// mayHaveChanged reports whether a request without an answer may have changed something.
func mayHaveChanged(r *http.Request) bool {
	reached, _ := r.Context().Value(reachedKey{}).(*atomic.Bool)
	return reached != nil && reached.Load()
}
