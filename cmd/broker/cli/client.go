package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// defaultServer is the default HTTP address of a broker.
const defaultServer = "http://127.0.0.1:7420"

// defaultPort is the port of defaultServer, for servers without scheme and port.
const defaultPort = "7420"

// maxAnswer limits the size of an answer, in bytes.
const maxAnswer = 1 << 30

// client calls the HTTP API of one broker.
type client struct {
	name  string // as given by the user
	base  *url.URL
	token string
	http  *http.Client
}

// connection holds the flags that select the broker of a command.
type connection struct {
	server, token, context string

	tls tlsFiles
}

// addConnection adds --server, --token, --context and the flags of TLS to a command.
func addConnection(cmd *cobra.Command) *connection {
	c := &connection{}
	flags := cmd.Flags()
	flags.StringVar(&c.server, "server", "", "address of the broker: `URL` (http, https, or unix:/path) or HOST[:PORT]; also BROKER_URL (default "+defaultServer+")")
	flags.StringVar(&c.token, "token", "", "bearer `TOKEN`; also BROKER_TOKEN")
	flags.StringVar(&c.context, "context", "",
		"the broker that 'broker context' knows by this `NAME`; also BROKER_CONTEXT")
	c.tls.add(flags)
	return c
}

// open makes a client from the flags, the environment and the chosen context.
func (c *connection) open() (*client, error) {
	one, err := c.broker()
	if err != nil {
		return nil, err
	}
	client, err := newClient(cmp.Or(one.Server, defaultServer), cmp.Or(c.token, one.Token, os.Getenv("BROKER_TOKEN")))
	if err != nil {
		return nil, err
	}
	files := c.tls
	if files == (tlsFiles{}) {
		files = one.TLS
	}
	return client, client.useTLS(files)
}

// run makes a RunE of a function that talks to the broker.
func (c *connection) run(do func(
	cmd *cobra.Command, c *client, args []string,
) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		opened, err := c.open()
		if err != nil {
			return err
		}
		return do(cmd, opened, args)
	}
}

// broker is the named broker: by --context, --server, BROKER_URL, BROKER_CONTEXT, or the chosen context. The token of a
// context is sent only to the server of that context.
func (c *connection) broker() (namedContext, error) {
	if c.context != "" && c.server != "" {
		return namedContext{}, UsageError(errors.New("expected --context or --server, not both"))
	}
	if server := cmp.Or(c.server, os.Getenv("BROKER_URL")); server != "" && c.context == "" {
		return namedContext{Server: server}, nil
	}
	known, err := readContexts()
	if err != nil {
		return namedContext{}, err
	}
	name := cmp.Or(c.context, os.Getenv("BROKER_CONTEXT"), known.Current)
	if name == "" {
		return namedContext{}, nil
	}
	return known.named(name)
}

func newClient(server, token string) (*client, error) {
	name := server
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if path, isUnix := strings.CutPrefix(server, "unix:"); isUnix {
		path = strings.TrimPrefix(path, "//")
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
		server = "http://localhost"
	} else if !strings.Contains(server, "://") {
		if strings.HasPrefix(server, ":") {
			server = "127.0.0.1" + server
		}
		server = "http://" + server
		if u, err := url.Parse(server); err == nil && u.Port() == "" {
			u.Host = net.JoinHostPort(u.Hostname(), defaultPort)
			server = u.String()
		}
	}
	base, err := url.Parse(server)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil,
			UsageError(fmt.Errorf("--server %q: expected http://HOST:PORT, https://HOST:PORT or unix:/path", server))
	}
	if base.User != nil {
		name = base.Redacted()
	}
	return &client{name: name, base: base, token: token, http: &http.Client{Transport: transport}}, nil
}

// request makes a request to a path below /api/v1/. Path elements from users must be escaped by the caller.
func (c *client) request(ctx context.Context, method, path string, query url.Values, body any) (*http.Request, error) {
	var payload io.Reader
	if body != nil {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(body); err != nil {
			return nil, err
		}
		payload = &text
	}
	target := strings.TrimSuffix(c.base.String(), "/") + "/api/v1/" + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, payload)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

// send performs a request. An answer other than success becomes an error with its exit code.
func (c *client) send(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		switch over := req.Context().Err(); {
		case errors.Is(over, context.DeadlineExceeded):
			return nil, context.Cause(req.Context())
		case over != nil:
			return nil, over
		}
		return nil, c.unanswered(err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }() // only read
	return nil, problemOf(resp)
}

// within limits the time for an answer.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("no answer within %s", span(d)))
}

// unanswered is the error for a request without an answer.
func (c *client) unanswered(err error) error {
	err = withoutURL(err)
	if refused := tlsProblem(c.name, err); refused != nil {
		return refused
	}
	if lostAnswer(err) {
		return &ExitError{Code: ExitUnreachable, Err: fmt.Errorf("%w: %w", errLostAnswer, err)}
	}
	return &ExitError{Code: ExitUnreachable, Err: fmt.Errorf(
		"no broker answers at %s: %w\nstart one with 'broker serve', or name it with --server, BROKER_URL or --context",
		c.name, err)}
}

// withoutURL is the cause of a failed request, without the method and the URL.
func withoutURL(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// errLostAnswer means that the broker may have handled a request, but its answer did not arrive.
var errLostAnswer = errors.New("the connection to the broker was lost before it answered")

// lostAnswer reports whether a connection ended after it was opened.
func lostAnswer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE)
}

// call sends a request and decodes the answer into into, unless that is nil or there is no content. It also returns the
// raw answer, for commands that print it unchanged.
func (c *client) call(
	ctx context.Context, method, path string, query url.Values, body, into any,
) (json.RawMessage, error) {
	req, err := c.request(ctx, method, path, query, body)
	if err != nil {
		return nil, err
	}
	return c.perform(req, into)
}

// submit submits jobs with a new idempotency key. If the outcome is unknown it tries once more; the key prevents a
// second submission. Ephemeral jobs cannot have a key and are not retried.
func (c *client) submit(ctx context.Context, query url.Values, body map[string]any, into any) (json.RawMessage, error) {
	if body["ephemeral"] != nil {
		return c.call(ctx, http.MethodPost, "jobs", query, body, into)
	}
	key := rand.Text()
	try := func() (json.RawMessage, error) {
		req, err := c.request(ctx, http.MethodPost, "jobs", query, body)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Idempotency-Key", key)
		return c.perform(req, into)
	}
	raw, err := try()
	switch {
	case errors.Is(err, errLostAnswer):
		err = &ExitError{Code: ExitFailed, Err: fmt.Errorf("outcome unknown: %w", err)}
	case !hasCode(err, "outcome_unknown"):
		return raw, err
	}
	pause(ctx, retryPause)
	raw, again := try()
	if again != nil {
		return nil, &ExitError{Code: Code(err), Err: fmt.Errorf("%w\ntried again: %w", err, again)}
	}
	return raw, nil
}

// perform sends a request and decodes the answer, like call.
func (c *client) perform(req *http.Request, into any) (json.RawMessage, error) {
	resp, err := c.send(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // only read
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, Failed(fmt.Errorf("read the answer: %w", err))
	}
	if into == nil || len(raw) == 0 {
		return raw, nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return nil, Failed(fmt.Errorf("%s %s: unexpected answer: %w", req.Method, req.URL.Path, err))
	}
	return raw, nil
}

// problem is an error of the API (RFC 9457).
type problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
	Errors []struct {
		Location string `json:"location"`
		Message  string `json:"message"`
	} `json:"errors"`
}

func (p *problem) Error() string {
	text := p.Detail
	if text == "" {
		text = p.Title
	}
	for _, e := range p.Errors {
		if !strings.Contains(text, e.Message) {
			text += "\n  " + e.Location + ": " + e.Message
		}
	}
	return text
}

// problemOf reads the error in an answer.
func problemOf(resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	p := &problem{}
	if err != nil || json.Unmarshal(text, p) != nil || p.Title == "" && p.Detail == "" {
		p.Detail = strings.TrimSpace(resp.Status + " " + strings.TrimSpace(string(text)))
	}
	if p.Status = resp.StatusCode; p.Status == http.StatusUnauthorized {
		p.Detail = cmp.Or(p.Detail, p.Title) + "; name it with --token, BROKER_TOKEN or a context"
	}
	return &ExitError{Code: codeFor(p.Status), Err: p}
}

// codeFor is the exit code for an HTTP status.
func codeFor(status int) int {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		return ExitUsage
	case http.StatusUnauthorized, http.StatusForbidden:
		return ExitDenied
	case http.StatusNotFound:
		return ExitNotFound
	case http.StatusConflict, http.StatusGone, http.StatusPreconditionFailed, http.StatusNotImplemented:
		return ExitConflict
	}
	return ExitFailed
}
