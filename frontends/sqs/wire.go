package sqs

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits of a request, in bytes. A Query form has up to three bytes for each byte of a message, and binary values have
// base64.
const (
	maxBatchBytes   = 1 << 20
	requestOverhead = 1 << 20
)

// Content types.
const (
	jsonType   = "application/x-amz-json-1.0"
	formType   = "application/x-www-form-urlencoded"
	targetHead = "AmazonSQS."

	queryJSONType = "application/json" // a Query client that accepts it gets its reply as JSON
)

// wireRequest is a request of either protocol, before its parameters are decoded.
type wireRequest struct {
	action  string
	isJSON  bool
	body    []byte // JSON
	form    *node  // Query
	pathURL string // the path, if it names a queue

	queryJSON bool // the reply of a Query request is JSON
}

// readRequest finds the protocol and the action of a request.
func readRequest(r *http.Request, body []byte) (*wireRequest, error) {
	w := &wireRequest{pathURL: queuePath(r.URL.Path), queryJSON: acceptsJSON(r)}
	if target := r.Header.Get("X-Amz-Target"); target != "" ||
		strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-amz-json") {
		w.isJSON, w.body = true, body
		action, ok := strings.CutPrefix(target, targetHead)
		if !ok || r.Method != http.MethodPost {
			return w, refuse(unknownOperation, "The action %s is not valid for this endpoint.", target)
		}
		w.action = action
		return w, nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return w, refuse(serialization, "The query string is malformed.")
	}
	if r.Method == http.MethodPost {
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return w, refuse(serialization, "The form is malformed.")
		}
		for name, values := range form {
			query[name] = values
		}
	}
	w.form, w.action = treeOf(query), query.Get("Action")
	if c, known := commands[w.action]; w.action != "" && (!known || c.noQueue && w.pathURL != "") {
		return w, refuse(unknownOperation, "The action %s is not valid for this endpoint.", w.action)
	}
	return w, nil
}

// acceptsJSON reports whether a Query client asks for JSON. API Gateway does, for example.
func acceptsJSON(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), queryJSONType)
}

// queuePath returns a path that names a queue, or an empty string.
func queuePath(p string) string {
	if p = path.Clean("/" + p); p == "/" {
		return ""
	}
	return p
}

// decode reads the parameters into a struct.
func (w *wireRequest) decode(into any) error {
	if w.isJSON {
		return decodeJSON(w.body, into)
	}
	return decodeForm(w.form, into)
}

func decodeJSON(body []byte, into any) error {
	if len(body) == 0 {
		return nil
	}
	if !utf8.Valid(body) {
		return refuse(serialization, "The request is not UTF-8.")
	}
	if manyParts(body) {
		return refuse(serialization, "The request has more than %d values.", maxParts)
	}
	if halfPair(body) {
		return refuse(invalidContents, "Invalid characters found: half of a surrogate pair.")
	}
	err := json.Unmarshal(body, into)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		field := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:] // the part before it contains our type names
		if field == "" {
			field = "request"
		}
		return refuse(serialization, "The value of %s is a JSON %s, which it cannot be.", shorten(field),
			shorten(wrong.Value))
	}
	if err != nil {
		return refuse(serialization, "The request is malformed: %v", err)
	}
	return nil
}

// maxParts is larger than any valid request: ten complete messages have a few hundred parts. net/url has a similar
// limit for forms.
const maxParts = 10_000

// manyParts reports whether a JSON text has too many lists, objects and members. It checks before they use memory.
func manyParts(text []byte) bool {
	parts, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == '{' || c == '['):
			parts++
		}
	}
	return parts > maxParts
}

// halfPair reports whether a JSON text contains an escaped lone surrogate, which is not a character. The decoder would
// silently replace it.
func halfPair(text []byte) bool {
	if !bytes.Contains(text, []byte(`\ud`)) && !bytes.Contains(text, []byte(`\uD`)) {
		return false
	}
	const escape = len(`\ud800`)
	unit := func(at int) rune {
		if at+escape > len(text) || text[at] != '\\' || text[at+1] != 'u' {
			return -1
		}
		n, err := strconv.ParseUint(string(text[at+2:at+escape]), 16, 16)
		if err != nil {
			return -1
		}
		return rune(n)
	}
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		switch r := unit(i); {
		case r < 0:
			i++ // another escape, of two bytes
		case !utf16.IsSurrogate(r):
			i += escape - 1
		case utf16.DecodeRune(r, unit(i+escape)) == utf8.RuneError:
			return true
		default:
			i += 2*escape - 1
		}
	}
	return false
}

// queueName is the queue in a URL: its last segment. Host and account do not matter.
func queueName(queueURL string) string {
	name := queueURL
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	return name
}

// arnName is the queue in an ARN.
func arnName(arn string) string { return arn[strings.LastIndexByte(arn, ':')+1:] }
