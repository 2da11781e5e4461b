package wiretap

import (
	"bytes"
	"encoding/json"
	"html/template"
	"net/http"
)

// page shows a Report. It reloads itself while the comparison runs.
var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>broker shadow</title>
{{if .Live}}<meta http-equiv="refresh" content="2">{{end}}
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body{font:15px/1.4 system-ui,sans-serif;margin:2rem;max-width:70rem}
table{border-collapse:collapse;margin:1rem 0}
th,td{text-align:right;padding:.2rem .8rem;border-bottom:1px solid #8884}
th:first-child,td:first-child{text-align:left}
pre{white-space:pre-wrap;word-break:break-all;background:#8881;padding:.6rem}
.bad{color:#b00}
:root{color-scheme:light dark}
</style></head><body>
<h1>{{.Protocol}} at {{.Server}}, and the broker</h1>
<p>{{.Since.Format "2006-01-02 15:04:05"}} to {{.Until.Format "2006-01-02 15:04:05"}}</p>
{{if .Dropped}}<p class="bad">The comparison was dropped: {{.Dropped}}. Clients are still served.</p>{{end}}
<table><tr><th>request<th>count<th>equal<th>different<th>unknown</tr>
{{range .Verbs}}<tr><td>{{.Verb}}<td>{{.Requests}}<td>{{.Equal}}<td{{if .Different}} class="bad"{{end}}>{{.Different}}<td>{{.Unknown}}</tr>
{{end}}<tr><td>total<td>{{.Requests}}<td>{{.Equal}}<td{{if .Different}} class="bad"{{end}}>{{.Different}}<td>{{.Unknown}}</tr></table>
<p>{{.NoReply}} of the requests have no reply. Messages that both sent unasked: {{.Pushes}}.</p>
<p{{if or .Jobs.OnlyServer .Jobs.OnlyBroker}} class="bad"{{end}}>{{.Verdict}}</p>
{{range .Gaps}}<p class="bad">{{.At.Format "15:04:05"}} {{.String}}</p>{{end}}
{{with .Reasons}}<h2>Why requests are unknown</h2><table>{{range $why, $n := .}}<tr><td>{{$why}}<td>{{$n}}</tr>{{end}}</table>{{end}}
{{with .Found}}<h2>Differences, the first ones</h2>{{range .}}
<h3>{{.Verb}}, connection {{.Connection}}, {{.At.Format "15:04:05.000"}}</h3>
<pre>request {{.Request}}
server  {{.Server}}
broker  {{.Broker}}</pre>{{end}}{{end}}
</body></html>
`))

// Page renders the report as a page.
func (r *Report) Page(live bool) ([]byte, error) {
	var b bytes.Buffer
	err := page.Execute(&b, struct {
		*Report
		Live bool
	}{r, live})
	return b.Bytes(), err
}

// ServePages adds the routes for the page and the JSON of a live report.
func ServePages(mux *http.ServeMux, report func() Report) {
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		r := report()
		p, err := r.Page(true)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		_, _ = w.Write(p) // the client may have disconnected
	})
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(report()) // the reader may be gone
	})
}
