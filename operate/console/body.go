package console

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"broker/operate/service"
)

// copyText is a command that users copy to a terminal.
type copyText struct{ Label, Text string }

// foldedBody is the size in bytes above which a body is folded. shownBody limits how many bytes of a body a page
// contains.
const (
	foldedBody = 8 << 10
	shownBody  = 64 << 10
)

// cutBody cuts a long body to its beginning and returns its full length, or zero if it was not cut.
func cutBody(j *service.Job) int {
	body := bodyBytes(j)
	if len(body) <= shownBody && !j.Truncated {
		return 0
	}
	body = body[:min(len(body), shownBody)]
	if j.Body != nil || len(j.Args) > 0 {
		text := strings.ToValidUTF8(string(body), "")
		j.Args, j.Body = nil, &text
		return len(body)
	}
	j.BodyBase64 = body
	return len(body)
}

// jobBody serves the whole body of a job as a file.
func jobBody(r *request) (*view, error) {
	body, err := r.service.Body(r.Context(), r.caller, r.named("id"))
	if err != nil {
		return nil, err
	}
	h := r.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="body"`)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = r.w.Write(body) // the client may have disconnected
	return nil, nil
}

// bodyBytes returns the body as it is stored.
func bodyBytes(j *service.Job) []byte {
	switch {
	case len(j.Args) > 0:
		return j.Args
	case j.Body != nil:
		return []byte(*j.Body)
	}
	return j.BodyBase64
}

// bodyForm returns the requested form of a body if the body has it, otherwise the most readable one.
func bodyForm(j *service.Job, wanted string) string {
	body := bodyBytes(j)
	switch {
	case wanted == "hex" || wanted == "text":
		return wanted
	case json.Valid(body):
		return "json"
	case isReadable(body):
		return "text"
	}
	return "hex"
}

// bodyHTML renders a body for people.
func bodyHTML(j *service.Job, form string) template.HTML {
	body := bodyBytes(j)
	switch form {
	case "json":
		return highlightJSON(pretty(body))
	case "hex":
		return template.HTML(template.HTMLEscapeString(hex.Dump(body)))
	}
	text := strings.ToValidUTF8(string(body), "\ufffd")
	return template.HTML(template.HTMLEscapeString(text))
}

// bodyText returns a body in the form that is copied and edited: indented JSON, text, or a hex dump.
func bodyText(j *service.Job) string {
	body := bodyBytes(j)
	if json.Valid(body) {
		return pretty(body)
	}
	return readable(body)
}

func resultText(o *service.Outcome) string {
	switch {
	case o == nil:
		return ""
	case o.Result != nil && json.Valid([]byte(*o.Result)):
		return pretty(json.RawMessage(*o.Result))
	case o.Result != nil:
		return readable([]byte(*o.Result))
	}
	return readable(o.ResultBase64)
}

// isReadable reports whether bytes are text without control characters.
func isReadable(b []byte) bool {
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' }
	return utf8.Valid(b) && strings.IndexFunc(string(b), control) < 0
}

// readable shows text as it is and anything else as a hex dump.
func readable(b []byte) string {
	if isReadable(b) {
		return string(b)
	}
	return hex.Dump(b)
}

// jsonTokens matches the coloured parts of JSON: names of members, other strings, numbers, and literals.
var jsonTokens = regexp.MustCompile(`("(?:[^"\\]|\\.)*")(\s*:)?|(-?[0-9][0-9.eE+-]*)|\b(true|false|null)\b`)

// maxColoured limits the JSON that is coloured, in bytes.
const maxColoured = 256 << 10

// highlightJSON colours JSON.
func highlightJSON(text string) template.HTML {
	if len(text) > maxColoured {
		return template.HTML(template.HTMLEscapeString(text))
	}
	var b strings.Builder
	at := 0
	span := func(class, token string) {
		b.WriteString(`<span class="` + class + `">` + template.HTMLEscapeString(token) + `</span>`)
	}
	for _, m := range jsonTokens.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(template.HTMLEscapeString(text[at:m[0]]))
		switch at = m[1]; {
		case m[4] >= 0:
			span("j-key", text[m[2]:m[3]])
			b.WriteString(text[m[4]:m[5]])
		case m[2] >= 0:
			span("j-str", text[m[2]:m[3]])
		case m[6] >= 0:
			span("j-num", text[m[6]:m[7]])
		default:
			span("j-lit", text[m[8]:m[9]])
		}
	}
	b.WriteString(template.HTMLEscapeString(text[at:]))
	return template.HTML(b.String()) // all text in it is escaped
}

// copies returns commands that submit the same job again to this broker.
func (r *request) copies(j *service.Job) []copyText {
	if j.Truncated {
		return nil
	}
	url, name := r.address()
	ports := r.console.options.Ports
	request := map[string]any{"queue": j.Queue, "type": j.Type}
	raw, text := "", true
	switch {
	case len(j.Args) > 0:
		request["args"], raw = j.Args, string(j.Args)
	case j.Body != nil:
		request["body"], raw = *j.Body, *j.Body
	default:
		request["body_base64"], text = base64.StdEncoding.EncodeToString(j.BodyBase64), len(j.BodyBase64) == 0
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil
	}
	list := []copyText{{
		"curl", "curl -H 'Content-Type: application/json' -d " + shellQuote(string(body)) + " " + url + "/api/v1/jobs",
	}}
	if !text {
		return list
	}
	list = append(list, copyText{"broker", "broker push " + shellQuote(j.Queue) + " " + shellQuote(raw) + typeFlag(j)})
	if port := ports["gearman"]; port != "" {
		list = append(list, copyText{
			"gearman",
			"printf %s " + shellQuote(raw) + " | gearman -h " + name + " -p " + port + " -b -f " + shellQuote(j.Queue),
		})
	}
	if port := ports["faktory"]; port != "" && len(j.Args) > 0 {
		push, err := json.Marshal(map[string]any{
			"jid": "copy-" + j.ID, "jobtype": j.Type, "queue": j.Queue, "args": j.Args,
		})
		if err != nil {
			return list
		}
		lines := shellQuote(`HELLO {"v":2}`) + " " + shellQuote("PUSH "+string(push)) + " END"
		list = append(list, copyText{"faktory", `printf '%s\r\n' ` + lines + " | nc " + name + " " + port})
	}
	return list
}

// address returns the URL of the broker as the browser knows it, and the name of the host in it.
func (r *request) address() (url, host string) {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	return scheme + r.Host, host
}

func typeFlag(j *service.Job) string {
	if j.Type == j.Queue {
		return ""
	}
	return " --type " + shellQuote(j.Type)
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// typedBody reads a body from a form. A JSON array becomes arguments. Text that looks like invalid JSON, or that
// replaces arguments, is refused unless the form confirms that it is text.
func typedBody(form url.Values, wasArgs bool) (args json.RawMessage, body *string, err error) {
	text := strings.ReplaceAll(form.Get("body"), "\r\n", "\n")
	if args, ok := asArgs(text); ok {
		return args, nil, nil
	}
	trimmed := strings.TrimSpace(text)
	if form.Get("as_text") == "yes" {
		return nil, &text, nil
	}
	var syntax *json.SyntaxError
	if strings.HasPrefix(trimmed, "[") || strings.HasPrefix(trimmed, "{") {
		var value any
		if errors.As(json.Unmarshal([]byte(text), &value), &syntax) {
			before := text[:min(int(syntax.Offset), len(text))]
			detail := fmt.Sprintf("the body begins like JSON and is not valid: %v, in line %d", syntax,
				strings.Count(before, "\n")+1)
			return nil, nil, invalid(fieldBody, detail+"; correct it, or choose to save it as text")
		}
	}
	if wasArgs {
		detail := "the body was a JSON array of arguments and is not one now; correct it, or choose to save it as text"
		return nil, nil, invalid(fieldBody, detail)
	}
	return nil, &text, nil
}

// fieldBody is the field that typedBody's errors name.
const fieldBody = "body"

// asksForText reports whether an error comes from typedBody; the form then offers to save the body as text.
func asksForText(err error) bool {
	var refused *service.Error
	return errors.As(err, &refused) && refused.Code == service.CodeInvalid && refused.Field == fieldBody
}

// asArgs parses a JSON array, which becomes a job's arguments.
func asArgs(text string) (json.RawMessage, bool) {
	trimmed := strings.TrimSpace(text)
	if !strings.HasPrefix(trimmed, "[") || !json.Valid([]byte(trimmed)) {
		return nil, false
	}
	return json.RawMessage(trimmed), true
}
