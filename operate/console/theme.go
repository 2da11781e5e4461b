package console

import "net/http"

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
