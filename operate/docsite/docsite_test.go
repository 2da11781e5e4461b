package docsite

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"broker/docs"
)

func render(t *testing.T) *Site {
	t.Helper()
	s, err := Render(docs.Files)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var (
	linkTargets = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	anchors     = regexp.MustCompile(` id="([^"]*)"`)
)

func TestLinksLeadToPagesAndHeadings(t *testing.T) {
	t.Parallel()
	s := render(t)
	ids := make(map[string]bool)
	for name := range s.Names() {
		if path.Ext(name) != ".html" {
			continue
		}
		for _, m := range anchors.FindAllStringSubmatch(string(s.File(name)), -1) {
			ids[name+"#"+m[1]] = true
		}
	}
	for name := range s.Names() {
		if path.Ext(name) != ".html" {
			continue
		}
		for _, m := range linkTargets.FindAllStringSubmatch(string(s.File(name)), -1) {
			file, anchor, _ := strings.Cut(m[1], "#")
			switch {
			case strings.Contains(m[1], "://"), m[1] == "../": // a link to the console
				continue
			case file == "":
				file = name
			}
			if s.File(file) == nil || anchor != "" && !ids[file+"#"+anchor] {
				t.Errorf("%s links to %s, which does not exist", name, m[1])
			}
		}
	}
}

func TestIndexLinksToEveryPage(t *testing.T) {
	t.Parallel()
	s := render(t)
	index := string(s.File("index.html"))
	for name := range s.Names() {
		if path.Ext(name) == ".html" && !strings.Contains(index, `href="`+name+`"`) {
			t.Errorf("docs/README.md does not link to %s", name)
		}
	}
}

func TestSearchIndexHasSections(t *testing.T) {
	t.Parallel()
	text := strings.TrimSuffix(strings.TrimPrefix(string(render(t).File("search-index.js")), "window.docsIndex = "),
		";\n")
	var sections []section
	if err := json.Unmarshal([]byte(text), &sections); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, s := range sections {
		found = found || s.Href == "operating.html#backup-and-restore" && strings.Contains(s.Text, "broker doctor")
	}
	if !found {
		t.Error("the section on backups is not in the index")
	}
}

func TestMarkdownCannotBringScripts(t *testing.T) {
	t.Parallel()
	s, err := Render(fstest.MapFS{
		"README.md": {
			Data: []byte(
				"# Index\n\n<script>alert(1)</script>\n\n[x](javascript:alert(1)) [page](page.md#there) [out](../SECURITY.md)\n",
			),
		},
		"page.md": {Data: []byte("# A <b>page</b>\n\n## There\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	body := string(s.File("index.html"))
	body = body[strings.Index(body, "<main"):]
	for _, bad := range []string{"<script", "javascript:", "SECURITY.md"} {
		if strings.Contains(body, bad) {
			t.Errorf("the page has %s:\n%s", bad, body)
		}
	}
	if !strings.Contains(body, `<a href="page.html#there">page</a>`) || !strings.Contains(body, "out") {
		t.Errorf("links are not rewritten:\n%s", body)
	}
}

func TestSiteOverHTTP(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.Handle(Pattern, Handler(docs.Files, func(err error) { t.Error(err) }))
	get := func(target, etag string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		r.Header.Set("If-None-Match", etag)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w
	}
	for target, want := range map[string]string{
		"/docs/": "text/html", "/docs/cli.html": "text/html", "/docs/docs.css": "text/css",
		"/docs/search-index.js": "text/javascript",
	} {
		w := get(target, "")
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), want) {
			t.Errorf("GET %s: %d %s", target, w.Code, w.Header().Get("Content-Type"))
		}
		if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") ||
			strings.Contains(csp, "unsafe") {
			t.Errorf("GET %s: Content-Security-Policy %q", target, csp)
		}
		if again := get(target, w.Header().Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("GET %s again: %d, %d bytes", target, again.Code, again.Body.Len())
		}
	}
	if w := get("/docs/nothing.html", ""); w.Code != http.StatusNotFound {
		t.Errorf("a page that does not exist: %d", w.Code)
	}
}
