package console

import (
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
