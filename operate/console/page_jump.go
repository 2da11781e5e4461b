package console

import (
	"net/http"
	"net/url"
	"strings"
)

// jumpPage redirects to the job or queue with the given name, otherwise to a search.
func jumpPage(r *request) (*view, error) {
	text := strings.TrimSpace(r.query.Get("q"))
	to := "jobs?" + url.Values{"q": {text}}.Encode()
	if text == "" {
		to = "jobs"
	} else if _, err := r.service.Queue(r.Context(), r.caller, text); err == nil {
		to = "queues/" + pathEscape(text)
	} else if j, err := r.service.Job(r.Context(), r.caller, text); err == nil {
		to = "jobs/" + pathEscape(j.ID)
	} else if ignoreRefusal(err) != nil {
		return nil, err
	}
	return r.back(to, "")
}

// themeCookie stores the colour theme of this browser.
const themeCookie = "broker_theme"

// theme returns the colour theme: light, dark, or empty for the system's.
func theme(r *http.Request) string {
	if cookie, err := r.Cookie(themeCookie); err == nil && (cookie.Value == "light" || cookie.Value == "dark") {
		return cookie.Value
	}
	return ""
}

// setTheme handles POST /theme.
func setTheme(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	cookie := &http.Cookie{
		Name: themeCookie, Value: r.PostFormValue("theme"), Path: "/", MaxAge: 365 * 24 * 3600, HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: r.TLS != nil,
	}
	if cookie.Value != "light" && cookie.Value != "dark" {
		cookie.Value, cookie.MaxAge = "", -1
	}
	http.SetCookie(w, cookie)
	http.Redirect(w, r, "./"+pageOf(r.PostFormValue("back"), ""), http.StatusSeeOther)
}
