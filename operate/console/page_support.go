package console

import (
	"bytes"
	"net/http"
	"strconv"
)

// supportBundle serves the support bundle of the settings page.
func supportBundle(r *request) (*view, error) {
	var b bytes.Buffer
	if err := r.service.SupportBundle(r.Context(), r.caller, &b); err != nil {
		return nil, err
	}
	name := "broker-support-" + r.console.options.Now().UTC().Format("20060102-150405") + ".tar.gz"
	h := r.w.Header()
	h.Set("Content-Type", "application/gzip")
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	h.Set("Cache-Control", "no-store")
	r.w.WriteHeader(http.StatusOK)
	_, _ = r.w.Write(b.Bytes()) // the client may have disconnected
	return nil, nil
}
