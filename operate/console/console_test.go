package console

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"broker/operate/service"
)

// newConsole is a console without a broker behind it.
func newConsole(t *testing.T, now *time.Time) *Console {
	t.Helper()
	c, err := New(Options{
		Port: toyPort{}, Now: func() time.Time { return *now },
		Failed: func(page string, err error) { t.Errorf("%s: %v", page, err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// logIn posts the login form and returns the answer.
func logIn(c *Console, secret, to string) *http.Response {
	form := url.Values{"secret": {secret}, "to": {to}}
	req := httptest.NewRequest(http.MethodPost, "http://localhost/login", strings.NewReader(form.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	c.Handler().ServeHTTP(w, req)
	return w.Result()
}

func TestLoginLeadsToPagesOfTheConsoleOnly(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	c := newConsole(t, &now)
	for to, want := range map[string]string{
		"": "./", "queues/a%2Fb?x=1": "./queues/a%2Fb?x=1", "https://evil.example/": "./", "//evil.example": "./",
		`\\evil.example`: "./",
	} {
		resp := logIn(c, "right", to)
		location := strings.TrimPrefix(resp.Header.Get("Location"), "/") // net/http makes it absolute
		if got := "./" + strings.TrimPrefix(location, "./"); resp.StatusCode != http.StatusSeeOther || got != want {
			t.Errorf("to %q: %d, to %q, want %q", to, resp.StatusCode, got, want)
		}
	}
	if resp := logIn(c, "wrong", ""); resp.StatusCode != http.StatusUnauthorized || len(resp.Cookies()) != 0 {
		t.Errorf("a wrong password: %d, cookies %v", resp.StatusCode, resp.Cookies())
	}
}

func TestSessionsEndWhenTheyAreNotUsed(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	c := newConsole(t, &now)
	cookie := logIn(c, "right", "").Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode {
		t.Errorf("the cookie is %v", cookie)
	}
	known := func() bool {
		req := httptest.NewRequest(http.MethodGet, "http://localhost/queues", http.NoBody)
		req.AddCookie(cookie)
		_, ok := c.sessions.caller(req)
		return ok
	}
	for range 11 { // used every two hours less a second, until its life is over
		if now = now.Add(sessionIdle - time.Second); !known() {
			t.Fatalf("the session has ended at %v", now)
		}
	}
	if now = now.Add(sessionIdle); known() {
		t.Error("the session outlives its time")
	}
	cookie = logIn(c, "right", "").Cookies()[0]
	if now = now.Add(sessionIdle); known() {
		t.Error("an idle session has not ended")
	}
}

func TestCookieOfASessionIsSecureUnderTLS(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	c := newConsole(t, &now)
	for scheme, secure := range map[string]bool{"http": false, "https": true} {
		req := httptest.NewRequest(http.MethodPost, scheme+"://localhost/login", strings.NewReader("secret=right"))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		c.Handler().ServeHTTP(w, req)
		if cookies := w.Result().Cookies(); len(cookies) != 1 || cookies[0].Secure != secure {
			t.Errorf("over %s the cookies are %v", scheme, cookies)
		}
	}
}

func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	c := newConsole(t, &now)
	req := httptest.NewRequest(http.MethodPost, "http://localhost/login", strings.NewReader("secret=right"))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", "https://evil.example")
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	w := httptest.NewRecorder()
	c.Handler().ServeHTTP(w, req)
	if w.Code != http.StatusForbidden {
		t.Errorf("status %d", w.Code)
	}
}

func TestRootOfAPageIsRelative(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/": "./", "/queues": "./", "/queues/a": "../", "/queues/a%2Fb": "../", "/queues/a%2Fb/": "../../",
	} {
		if got := root(httptest.NewRequest(http.MethodGet, "http://localhost"+path, http.NoBody)); got != want {
			t.Errorf("root of %s is %s, want %s", path, got, want)
		}
	}
}

func TestBodiesAreReadable(t *testing.T) {
	t.Parallel()
	text, object := "line one\nline two", `{"a":[1]}`
	for _, test := range []struct {
		job  service.Job
		want string
	}{
		{service.Job{Args: json.RawMessage(`[1,"a"]`)}, "[\n  1,\n  \"a\"\n]"},
		{service.Job{Body: &text}, text},
		{service.Job{Body: &object}, "{\n  \"a\": [\n    1\n  ]\n}"},
		{service.Job{BodyBase64: []byte{0, 1, 'a'}}, hex.Dump([]byte{0, 1, 'a'})},
	} {
		if got := bodyText(&test.job); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}

// TestVendoredFilesAreAsPublished compares the files of others with their list.
func TestVendoredFilesAreAsPublished(t *testing.T) {
	t.Parallel()
	text, err := staticFiles.ReadFile("static/vendor.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct{ File, Package, Version, License, SHA256 string }
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	ours := map[string]bool{
		"console.css": true, "console.js": true, "live.js": true, "icon.svg": true, "vendor.json": true,
	}
	for _, v := range list {
		content, err := staticFiles.ReadFile("static/" + v.File)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != v.SHA256 || v.License == "" || v.Version == "" {
			t.Errorf("%s is not the file of %s %s", v.File, v.Package, v.Version)
		}
		ours[v.File] = true
	}
	entries, err := staticFiles.ReadDir("static")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !ours[e.Name()] {
			t.Errorf("%s is not in vendor.json", e.Name())
		}
	}
}
