package console

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"broker/frontends/access"
	"broker/operate/service"
)

// Options of the console.
type Options struct {
	Service func() *service.Service // nil while the broker starts
	Version string
	Now     func() time.Time

	// Failed receives internal errors, which pages do not show.
	Failed func(page string, err error)

	// Authenticate finds the caller of a request by certificate, Authorization header or, without any, the default
	// principal; ok is false if that is not enough.
	Authenticate func(*http.Request) (caller service.Caller, ok bool)

	// Check finds the caller for a password or token, with the limit on failed logins; status says why not.
	Check func(r *http.Request, secret string) (caller service.Caller, status int)

	// API is the OpenAPI document of the HTTP API.
	API func() []byte

	// Cluster is the cluster that the broker is a node of; nil: it is a single node.
	Cluster *service.Cluster

	// Ports of the other protocols by name, as far as they are served over TCP: for commands that users copy.
	Ports map[string]string

	// Status is the HTTP status for an error of the service.
	Status func(error) int
}

// Console serves the pages.
type Console struct {
	options  Options
	assets   *assets
	pages    *pages
	sessions sessions
	live     *live

	refreshes refreshes

	histories histories
	worst     keptQueues
	api       func() (*apiData, error) // of the page API
}

// New makes a console.
func New(o Options) (*Console, error) {
	if o.Now == nil {
		o.Now = func() time.Time { return o.Service().Now().Time() }
	}
	c := &Console{options: o}
	var err error
	if c.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	if c.pages, err = loadPages(c); err != nil {
		return nil, err
	}
	c.api = sync.OnceValues(func() (*apiData, error) { return readAPI(o.API) })
	c.sessions.now = o.Now
	c.live, c.refreshes.now = newLive(o.Service, o.Now), o.Now
	return c, nil
}

// Handler serves all pages below the root.
func (c *Console) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /static/{name}", c.assets)
	mux.HandleFunc("GET /login", c.loginPage)
	mux.HandleFunc("POST /login", c.login)
	mux.HandleFunc("POST /logout", c.logout)
	mux.HandleFunc("POST /theme", setTheme)
	mux.Handle("GET /live", c.known(http.HandlerFunc(c.live.serve)))
	for path, show := range pagesByPath {
		mux.Handle("GET "+path, c.known(c.shared(c.shown(show))))
	}
	for path, change := range formsByPath {
		mux.Handle("POST "+path, c.known(c.shown(change)))
	}
	return http.NewCrossOriginProtection().Handler(mux)
}

// Missing serves the page for a path that nothing serves.
func (c *Console) Missing() http.Handler {
	return c.known(c.shown(func(r *request) (*view, error) {
		detail := &service.Error{Detail: "No page has the address " + r.URL.Path + "."}
		return &view{page: "error", title: "There is no such page", status: http.StatusNotFound, data: detail, still: true}, nil
	}))
}

// pagesByPath are the pages.
var pagesByPath = map[string]handler{
	"/{$}": overviewPage, "/queues": queuesPage, "/queues/{name}": queuePage, "/jobs": jobsPage("jobs"), "/jobs/{id}": jobPage, "/jobs/{id}/body": jobBody,
	"/running": jobsPage("running"), "/scheduled": jobsPage("scheduled"), "/retrying": jobsPage("retrying"), "/dead": jobsPage("dead"), "/finished": finishedPage,
	"/batches": batchesPage, "/batches/{id}": batchPage, "/workflows/{id}": workflowPage, "/storage": storagePage, "/api": apiPage,
	"/schedules": schedulesPage, "/schedules/{name}": schedulePage, "/cluster": clusterPage, "/limits": limitsPage,
	"/workers": workersPage, "/submit": submitPage, "/operations": operationsPage, "/audit": auditPage, "/settings": settingsPage,
	"/jump": jumpPage, "/complete": completePage,
}

// formsByPath are the forms that pages send.
var formsByPath = map[string]handler{
	"/queues": changeQueues, "/queues/{name}": changeQueue, "/jobs": changeJobs, "/jobs/{id}": changeJob,
	"/workers": changeWorker, "/submit": submitJob, "/operations": changeOperation, "/storage": changeStorage, "/schedules": changeSchedules, "/limits": changeLimits,
	"/cluster": changeCluster, "/support": supportBundle,
}

// workPages and systemPages are entries of the navigation; those that the caller may not see are left out.
var (
	workPages   = choices("", "workers", "Workers", "schedules", "Schedules", "batches", "Batches", "limits", "Limits")
	systemPages = choices("", "storage", "Storage", "cluster", "Cluster", "operations", "Operations", "audit", "Audit log", "settings", "Settings", "api", "API")
	adminPages  = []string{"audit", "settings"}
	queuePages  = []string{"limits", "api"} // with what the caller may see of some queues
)

// Patterns are the routes that Handler serves, for a mux that it shares.
func Patterns() []string {
	patterns := []string{"GET /static/{name}", "GET /login", "POST /login", "POST /logout", "POST /theme", "GET /live"}
	for path := range pagesByPath {
		patterns = append(patterns, "GET "+path)
	}
	for path := range formsByPath {
		patterns = append(patterns, "POST "+path)
	}
	return patterns
}

// request is one request of a known caller.
type request struct {
	console *Console
	service *service.Service
	caller  service.Caller
	w       http.ResponseWriter
	*http.Request
	query url.Values
}

// handler answers a request with a view, or with nil once it has answered itself.
type handler func(*request) (*view, error)

// view is what a page shows.
type view struct {
	page   string // name of the template
	title  string
	queue  string // the one that the page is about; empty: several
	nav    string // the entry of the navigation that is marked
	status int    // zero: 200
	data   any
	still  bool   // the page is not renewed while it is looked at
	turn   uint64 // of the event stream when the page was begun
}

// known lets through callers that have shown who they are, by a session or by what their request carries.
func (c *Console) known(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, ok := c.sessions.caller(r)
		if !ok {
			caller, ok = c.options.Authenticate(r)
		}
		if !ok {
			if r.Header.Get("HX-Request") != "" || r.URL.Path == "/live" {
				http.Error(w, "log in again", http.StatusUnauthorized)
				return
			}
			to := root(r) + "login"
			if r.Method == http.MethodGet && r.URL.Path != "/" {
				to += "?" + url.Values{"to": {strings.TrimPrefix(r.URL.RequestURI(), "/")}}.Encode()
			}
			http.Redirect(w, r, to, http.StatusSeeOther)
			return
		}
		caller.Via = "console"
		next.ServeHTTP(w, r.WithContext(withCaller(r.Context(), caller)))
	})
}

// shown runs a handler and renders what it shows.
func (c *Console) shown(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := c.options.Service()
		if s == nil {
			w.Header().Set("Retry-After", "1")
			c.render(w, r, service.Caller{}, &view{
				page: "starting", title: "Not ready", status: http.StatusServiceUnavailable, data: c.options.Cluster != nil,
			})
			return
		}
		req := &request{console: c, service: s, caller: callerOf(r.Context()), w: w, Request: r, query: r.URL.Query()}
		if r.Method == http.MethodPost {
			r.Body = http.MaxBytesReader(w, r.Body, maxForm)
			if err := r.ParseForm(); err != nil {
				http.Error(w, "the form cannot be read: "+err.Error(), http.StatusBadRequest)
				return
			}
		}
		turn := c.live.turn.Load()
		v, err := h(req)
		if err != nil {
			v = c.errorView(r, err)
		}
		if v != nil {
			v.turn = turn
			c.render(w, r, req.caller, v)
		}
	})
}

// maxForm bounds a form, in bytes. Larger jobs are submitted over the API.
const maxForm = 8 << 20

// errorView is the page for an error.
func (c *Console) errorView(r *http.Request, err error) *view {
	var refused *service.Error
	if !errors.As(err, &refused) {
		if r.Context().Err() == nil {
			c.options.Failed(r.URL.Path, err)
		}
		refused = &service.Error{Detail: "something went wrong in the broker; its log says what"}
	}
	refused = plainly(refused)
	title := map[service.Code]string{
		service.CodeJobNotFound: "This job is gone", service.CodeQueueNotFound: "There is no such queue", service.CodeForbidden: "You may not see this",
	}[refused.Code]
	return &view{page: "error", title: cmp.Or(title, "That did not work"), status: c.options.Status(err), data: refused, still: true}
}

// plainly is an error in the words of a page.
func plainly(e *service.Error) *service.Error {
	detail := map[service.Code]string{
		service.CodeJobNotFound:   "No job has this id. It has ended and is not kept, or it was never submitted.",
		service.CodeQueueNotFound: "No queue has this name. A queue appears with its first job.",
	}[e.Code]
	said := *e
	said.Detail = cmp.Or(detail, said.Detail)
	return &said
}

// back answers a form: the browser goes on at a page, which shows what came of it.
func (r *request) back(to, note string) (*view, error) {
	if note != "" {
		http.SetCookie(r.w, &http.Cookie{
			Name: flashCookie, Value: base64.RawURLEncoding.EncodeToString([]byte(note)), Path: "/", MaxAge: 60, HttpOnly: true,
			SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
		})
	}
	http.Redirect(r.w, r.Request, root(r.Request)+to, http.StatusSeeOther)
	return nil, nil
}

// flashCookie carries the note of a form to the page that follows.
const flashCookie = "broker_note"

// flash takes the note of the form before.
func flash(w http.ResponseWriter, r *http.Request) string {
	cookie, err := r.Cookie(flashCookie)
	if err != nil {
		return ""
	}
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Path: "/", MaxAge: -1, HttpOnly: true})
	note, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil || len(note) > 500 {
		return ""
	}
	return string(note)
}

// root leads from the page of a request to the root of the console, as a relative URL.
func root(r *http.Request) string {
	depth := strings.Count(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	if depth == 0 {
		return "./"
	}
	return strings.Repeat("../", depth)
}

// mayRole reports whether the caller has a right in general; the service checks it again for each queue.
func mayRole(c service.Caller, role access.Role) bool {
	return c.Principal != nil && c.Principal.MaySome(role)
}

// newNonce makes the nonce that ties a page's scripts to its policy.
func newNonce() string {
	var b [16]byte
	_, _ = rand.Read(b[:])                            // never fails
	return base64.RawURLEncoding.EncodeToString(b[:]) // nothing in it is escaped in HTML: htmx compares the text
}
