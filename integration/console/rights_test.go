package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"broker/integration/harness"
)

// principal is a part of a settings file.
func principal(name, roles string) string {
	sum := sha256.Sum256([]byte(token(name)))
	return fmt.Sprintf("[[principal]]\nname = %q\ntoken = \"sha256:%s\"\nroles = [%s]\n", name,
		hex.EncodeToString(sum[:]), roles)
}

func token(name string) string { return "token-of-" + name + "-0123456789" }

// logInAs logs in at a page that needs it.
func (b *browser) logInAs(name, path string) {
	b.t.Helper()
	b.open(path)
	b.run(chromedp.SendKeys(`input[name="secret"]`, token(name)+"\r"), chromedp.WaitVisible("#nav .user"))
}

// htmlForm, htmlButton, htmlValue and htmlEntry find what a page offers in its text.
var (
	htmlForm   = regexp.MustCompile(`(?s)<form [^>]*method="post".*?</form>`)
	htmlButton = regexp.MustCompile(`<button [^>]*\bname="[^>]*>`)
	htmlValue  = regexp.MustCompile(`\bvalue="([^"]*)"`)
	htmlEntry  = regexp.MustCompile(`<li><a href="([^"]*)"`)
)

// offers are the entries of the navigation and the buttons of all pages that a caller is shown. The pages are read
// without a browser, which takes a second of the processor for three of them.
func offers(t *testing.T, base, name string) (entries, buttons []string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	read := func(resp *http.Response, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return textOf(t, resp)
	}
	first := read(client.PostForm(base+"/login", url.Values{"secret": {token(name)}, "to": {"/jobs"}}))
	if !strings.Contains(first, `<span class="user">`) {
		t.Fatalf("%s is not logged in: %s", name, first)
	}
	_, nav, _ := strings.Cut(first, `id="nav"`)
	nav, _, _ = strings.Cut(nav, "</nav>")
	for _, link := range htmlEntry.FindAllStringSubmatch(nav, -1) {
		entries = append(entries, link[1])
	}
	for _, path := range append(entries, "queues/mine", "queues/theirs") {
		_, main, _ := strings.Cut(read(client.Get(base+"/"+strings.TrimPrefix(path, "./"))), "<main ")
		for _, form := range htmlForm.FindAllString(main, -1) {
			for _, button := range htmlButton.FindAllString(form, -1) {
				if value := htmlValue.FindStringSubmatch(button); value != nil {
					buttons = append(buttons, value[1])
				}
			}
		}
	}
	slices.Sort(buttons)
	return entries, slices.Compact(buttons)
}

// TestRolesLimitPages logs in with each role once, and in a browser with that of a single queue.
func TestRolesLimitPages(t *testing.T) {
	t.Parallel()
	names := map[string]string{
		"reader": `"read"`, "producer": `"produce"`, "consumer": `"consume"`, "operator": `"operate"`,
		"admin": `"admin"`, "clerk": `"operate:mine"`,
	}
	config := ""
	for name, roles := range names {
		config += principal(name, roles)
	}
	broker := harness.Start(t, harness.Options{Config: config})
	broker.Password = token("admin")
	for _, queue := range []string{"mine", "theirs"} {
		pushJob(t, broker, `{"queue":%q,"type":"Work"}`, queue)
	}
	all := "./ queues jobs running scheduled retrying dead finished submit workers schedules batches limits storage cluster operations audit settings api"
	without := func(names ...string) string {
		return strings.Join(slices.DeleteFunc(strings.Fields(all),
			func(e string) bool { return slices.Contains(names, e) }), " ")
	}
	some := "queues jobs running scheduled retrying dead limits api"
	operating := "cancel check clear create delete disconnect edit edit-run kill limit move pause priority remove resume retry set share"
	for name, want := range map[string]struct{ pages, has, hasNot string }{
		"reader":   {without("submit", "audit", "settings"), "", operating + " submit backup"},
		"producer": {strings.Replace(some, "dead", "dead submit", 1), "submit wait", operating + " backup"},
		"consumer": {some, "", operating + " submit backup"},
		"operator": {
			without("submit", "audit", "settings"),
			"pause limit share clear retry kill cancel delete move priority set create check", "submit backup",
		},
		"clerk": {
			some, "pause limit share clear retry kill cancel delete set", "submit backup check create disconnect",
		},
		"admin": {all, "pause limit share clear retry kill cancel delete set create check submit wait backup", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pages, buttons := offers(t, "http://"+broker.HTTP, name)
			if got := strings.Join(pages, " "); got != want.pages {
				t.Errorf("the pages are %s, want %s", got, want.pages)
			}
			for _, button := range strings.Fields(want.has) {
				if !slices.Contains(buttons, button) {
					t.Errorf("there is no button %s", button)
				}
			}
			for _, button := range strings.Fields(want.hasNot) {
				if slices.Contains(buttons, button) {
					t.Errorf("there is a button %s", button)
				}
			}
		})
	}
	b := openBrowser(t, "http://"+broker.HTTP)
	b.logInAs("clerk", "/jobs")
	b.clean("the log-in")
	b.open("/queues/theirs")
	b.refused("You may not see this")
	b.open("/jobs")
	var ids []string
	b.eval(`[...document.querySelectorAll('td[data-label="Queue"]')].map(td => td.textContent)`, &ids)
	if strings.Join(ids, " ") != "mine" {
		t.Errorf("the clerk sees jobs of %q", ids)
	}
	b.open("/")
	b.arrives("/queues")
}

// TestLoginLimitsGuesses tries too many passwords, and looks at the cookie of the right one.
func TestLoginLimitsGuesses(t *testing.T) {
	t.Parallel()
	broker := harness.Start(t, harness.Options{Password: "s3cret"})
	b := openBrowser(t, "http://"+broker.HTTP)
	b.open("/")
	b.run(chromedp.SendKeys(`input[name="secret"]`, "s3cret\r"), chromedp.WaitVisible(`form[action="logout"] button`))
	var cookies []*network.Cookie
	b.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		cookies, err = network.GetCookies().Do(ctx)
		return err
	}))
	i := slices.IndexFunc(cookies, func(c *network.Cookie) bool { return c.Name == "broker_session" })
	// Secure is for TLS
	if i < 0 || !cookies[i].HTTPOnly || cookies[i].SameSite != network.CookieSameSiteLax || cookies[i].Secure {
		t.Errorf("the cookies are %+v", cookies)
	}
	stolen := cookies[max(i, 0)].Value
	b.run(chromedp.Click(`form[action="logout"] button`))
	b.wants("Password or token")
	b.clean("the login")
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	get := func(method, path, body string, cookie string) (status int, page string) {
		req, err := http.NewRequestWithContext(t.Context(), method, b.base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.AddCookie(&http.Cookie{Name: "broker_session", Value: cookie})
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, textOf(t, resp)
	}
	if status, _ := get(http.MethodGet, "/queues", "", stolen); status != http.StatusSeeOther {
		t.Errorf("after the log-out the cookie gets status %d", status)
	}
	for tries := 0; ; tries++ {
		status, page := get(http.MethodPost, "/login", url.Values{"secret": {"guess"}}.Encode(), "")
		if status == http.StatusTooManyRequests {
			if !strings.Contains(page, "Too many failed logins from this address. Try again in a minute.") {
				t.Errorf("the page says %s", page)
			}
			break
		}
		if status != http.StatusUnauthorized || tries > 100 {
			t.Fatalf("guess %d gets status %d", tries, status)
		}
	}
}
