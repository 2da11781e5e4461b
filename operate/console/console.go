package console

import (
	"cmp"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"broker/operate/service"
)

// Options of the console.
type Options struct {
	Port    Port
	Version string
	Now     func() time.Time

	// Failed receives internal errors, which pages do not show.
	Failed func(page string, err error)

	// Cluster is the cluster of this node; nil: there is none.
	Cluster service.Cluster

	// Ports maps the names of protocols to their TCP ports, for commands that users copy.
	Ports map[string]string

	// TraceURL is the address of a trace, with {trace} for its id; empty: ids of traces are no links.
	TraceURL string
}

// Port is the HTTP port on which the pages are served beside the API.
type Port interface {
	// Service is nil while the broker starts.
	Service() *service.Service

	// Caller finds the caller of a request by its certificate or Authorization header, or returns the default
	// principal. ok is false if the request needs a login.
	Caller(*http.Request) (caller service.Caller, ok bool)

	// Admit reports whether a caller may have one more connection. If not, it has written the response.
	Admit(http.ResponseWriter, *http.Request, service.Caller) bool

	// CheckSecret finds the caller for a password or token, subject to the limit of failed logins. status is the reason
	// for a refusal.
	CheckSecret(r *http.Request, secret string) (caller service.Caller, status int)

	// Document is the OpenAPI document of the HTTP API.
	Document() []byte

	// Status returns the HTTP status for an error of the service.
	Status(error) int
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
	health    clusterHealth
	worst     keptQueues
	api       func() (*apiData, error) // for the page API
}

// New makes a console.
func New(o Options) (*Console, error) {
	if o.Now == nil {
		o.Now = func() time.Time { return o.Port.Service().Now().Time() }
	}
	c := &Console{options: o}
	var err error
	if c.assets, err = embeddedAssets(); err != nil {
		return nil, err
	}
	if c.pages, err = loadPages(c); err != nil {
		return nil, err
	}
	c.api = sync.OnceValues(func() (*apiData, error) { return readAPI(o.Port.Document) })
	c.sessions.now = o.Now
	if o.Cluster != nil {
		c.health.ask, c.health.now = o.Cluster.Overview, o.Now
	}
	c.live, c.refreshes.now = newLive(o.Port.Service, o.Now), o.Now
	return c, nil
}

// Routes are all pages and forms, by patterns of http.ServeMux.
func (c *Console) Routes() map[string]http.Handler {
	routes := map[string]http.Handler{
		"GET /static/{name}": c.assets,
		"GET /login":         http.HandlerFunc(c.loginPage),
		"POST /login":        http.HandlerFunc(c.login),
		"POST /logout":       http.HandlerFunc(c.logout),
		"POST /theme":        http.HandlerFunc(setTheme),
		"GET /live":          c.authenticated(http.HandlerFunc(c.live.serve)),
	}
	for path, show := range pagesByPath {
		routes["GET "+path] = c.authenticated(c.shared(c.shown(show)))
	}
	for path, change := range formsByPath {
		routes["POST "+path] = c.authenticated(c.shown(change))
	}
	protection := http.NewCrossOriginProtection()
	for pattern, h := range routes {
		routes[pattern] = protection.Handler(h)
	}
	return routes
}

// Missing serves the page for unknown paths.
func (c *Console) Missing() http.Handler {
	return c.authenticated(c.shown(func(r *request) (*view, error) {
		detail := &service.Error{Detail: "No page has the address " + r.URL.Path + "."}
		return &view{
			page: "error", title: "There is no such page", status: http.StatusNotFound, data: detail, still: true,
		}, nil
	}))
}

// pagesByPath maps paths to pages.
var pagesByPath = map[string]handler{
	"/{$}": overviewPage, "/queues": queuesPage, "/queues/{name}": queuePage, "/jobs": jobsPage("jobs"),
	"/jobs/{id}": jobPage, "/jobs/{id}/body": jobBody,
	"/running": jobsPage("running"), "/scheduled": jobsPage("scheduled"), "/retrying": jobsPage("retrying"),
	"/dead": jobsPage("dead"), "/finished": finishedPage,
	"/batches": batchesPage, "/batches/{id}": batchPage, "/workflows/{id}": workflowPage, "/storage": storagePage,
	"/api":       apiPage,
	"/schedules": schedulesPage, "/schedules/{name}": schedulePage, "/cluster": clusterPage, "/limits": limitsPage,
	"/workers": workersPage, "/submit": submitPage, "/operations": operationsPage, "/audit": auditPage,
	"/settings": settingsPage,
	"/jump":     jumpPage, "/complete": completePage,
}

// formsByPath maps paths to the handlers of forms.
var formsByPath = map[string]handler{
	"/queues": changeQueues, "/queues/{name}": changeQueue, "/jobs": changeJobs, "/jobs/{id}": changeJob,
	"/workers": changeWorker, "/submit": submitJob, "/operations": changeOperation, "/storage": changeStorage,
	"/schedules": changeSchedules, "/limits": changeLimits,
	"/cluster": changeCluster, "/support": supportBundle, "/undo": changeUndo,
}

// workPages and systemPages are the navigation entries. Entries that the caller may not see are left out.
var (
	workPages   = choices("", "workers", "Workers", "schedules", "Schedules", "batches", "Batches", "limits", "Limits")
	systemPages = choices("", "storage", "Storage", "cluster", "Cluster", "operations", "Operations", "audit",
		"Audit log", "settings", "Settings", "api", "API")
	adminPages   = []string{"audit", "settings"}
	partialPages = []string{"limits", "api"} // pages that callers with rights for some queues only may see in part
)

// request is a request of an authenticated caller.
type request struct {
	console *Console
	service *service.Service
	caller  service.Caller
	w       http.ResponseWriter
	*http.Request
	query url.Values
}

// handler returns the view for a request, or nil if it has written the response itself.
type handler func(*request) (*view, error)

// view is the content of a page.
type view struct {
	page   string // name of the template
	title  string
	queue  string // the queue of the page; empty: several
	nav    string // the selected entry of the navigation
	status int    // zero: 200
	data   any
	still  bool   // the page does not refresh itself
	turn   uint64 // of the event stream when the page was started
}

// authenticated requires authentication, by a session cookie or by the request itself.
func (c *Console) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, ok := c.sessions.caller(r)
		if !ok {
			caller, ok = c.options.Port.Caller(r)
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
		if !c.options.Port.Admit(w, r, caller) {
			return
		}
		caller.Via = "console"
		next.ServeHTTP(w, r.WithContext(withCaller(r.Context(), caller)))
	})
}

// shown runs a handler and renders its view.
func (c *Console) shown(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := c.options.Port.Service()
		if s == nil && !(r.URL.Path == "/cluster" && r.Method == http.MethodGet && c.options.Cluster != nil) {
			w.Header().Set("Retry-After", "1")
			if r.Method == http.MethodGet {
				w.Header().Set("Refresh", "2") // also without scripts
			}
			c.render(w, r, service.Caller{}, &view{
				page: "starting", title: "Not ready", status: http.StatusServiceUnavailable,
				data: c.options.Cluster != nil,
			})
			return
		}
		req := &request{console: c, service: s, caller: callerOf(r.Context()), w: w, Request: r, query: r.URL.Query()}
		req.caller.Made = &service.Made{}
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

// maxForm limits the size of a form, in bytes. Larger jobs are submitted over the API.
const maxForm = 8 << 20

// errorView returns the page for an error.
func (c *Console) errorView(r *http.Request, err error) *view {
	var refused *service.Error
	if !errors.As(err, &refused) {
		if r.Context().Err() == nil {
			c.options.Failed(r.URL.Path, err)
		}
		refused = &service.Error{Detail: "something went wrong in the broker; its log says what"}
	}
	refused = reworded(refused)
	title := map[service.Code]string{
		service.CodeJobNotFound: "This job is gone", service.CodeQueueNotFound: "There is no such queue",
		service.CodeForbidden: "You may not see this",
	}[refused.Code]
	return &view{
		page: "error", title: cmp.Or(title, "That did not work"), status: c.options.Port.Status(err), data: refused,
		still: true,
	}
}

// reworded rewords an error for a page.
func reworded(e *service.Error) *service.Error {
	detail := map[service.Code]string{
		service.CodeJobNotFound:   "No job has this id. It has ended and is not kept, or it was never submitted.",
		service.CodeQueueNotFound: "No queue has this name. A queue appears with its first job.",
	}[e.Code]
	shown := *e
	shown.Detail = cmp.Or(detail, shown.Detail)
	return &shown
}

// back redirects to a page of the console, after a form with a note that the page shows, beside a button that undoes
// what the form has changed.
func (r *request) back(to, note string) (*view, error) {
	if note != "" {
		if ids := r.caller.Made.IDs; len(ids) > 0 && len(ids) <= maxUndone {
			note += "\n" + strings.Join(ids, " ")
		}
		http.SetCookie(r.w, &http.Cookie{
			Name: flashCookie, Value: base64.RawURLEncoding.EncodeToString([]byte(note)), Path: "/", MaxAge: 60,
			HttpOnly: true,
			SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
		})
	}
	http.Redirect(r.w, r.Request, root(r.Request)+to, http.StatusSeeOther)
	return nil, nil
}

// flashCookie carries the note of a form to the next page.
const flashCookie = "broker_note"

// maxUndone limits the changes that the button beside a note undoes.
const maxUndone = 50

// flash returns the note of the previous form, with the changes that can be undone, and deletes its cookie.
func flash(w http.ResponseWriter, r *http.Request) (note string, made []string) {
	cookie, err := r.Cookie(flashCookie)
	if err != nil {
		return "", nil
	}
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Path: "/", MaxAge: -1, HttpOnly: true})
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil || len(text) > 1500 {
		return "", nil
	}
	note, ids, _ := strings.Cut(string(text), "\n")
	return note, strings.Fields(ids)
}

// root is the relative URL from the page of a request to the root of the console.
func root(r *http.Request) string {
	depth := strings.Count(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	if depth == 0 {
		return "./"
	}
	return strings.Repeat("../", depth)
}
