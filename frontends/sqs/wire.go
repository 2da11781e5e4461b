package sqs

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"
)

// Limits of a request, in bytes. A Query form has up to three bytes for each byte of a message, and binary values have base64.
const (
	maxBatchBytes   = 1 << 20
	requestOverhead = 1 << 20
)

// Content types.
const (
	jsonType   = "application/x-amz-json-1.0"
	formType   = "application/x-www-form-urlencoded"
	targetHead = "AmazonSQS."
)

// wireRequest is a request of either protocol before its parameters are decoded.
type wireRequest struct {
	action  string
	isJSON  bool
	body    []byte // JSON
	form    *node  // Query
	pathURL string // the path, if it names a queue
}

// readRequest finds the protocol and the action of a request.
func readRequest(r *http.Request, body []byte) (*wireRequest, error) {
	w := &wireRequest{pathURL: queuePath(r.URL.Path)}
	if target := r.Header.Get("X-Amz-Target"); target != "" || strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-amz-json") {
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
	if c := commands[w.action]; w.action != "" && (c.run == nil || c.noQueue && w.pathURL != "") {
		return w, refuse(unknownOperation, "The action %s is not valid for this endpoint.", w.action)
	}
	return w, nil
}

// queuePath is a path that names a queue, or empty.
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
	if err := json.Unmarshal(body, into); err != nil {
		return refuse(serialization, "The request is malformed: %v", err)
	}
	return nil
}

// queueName is the queue that a URL names: its last segment, whatever host and account it has.
func queueName(queueURL string) string {
	name := queueURL
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	return name
}

// arnName is the queue that an ARN names.
func arnName(arn string) string { return arn[strings.LastIndexByte(arn, ':')+1:] }
