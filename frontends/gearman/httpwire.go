package gearman

import (
	"bytes"
	"strconv"
)

// httpHeaderMax is the largest request line and headers together, in bytes.
const httpHeaderMax = 64 << 10

// httpStatus is a status with the text that gearmand uses.
type httpStatus string

// The statuses of answers. Zero: the request is good.
const (
	httpBadRequest       httpStatus = "400 BAD_REQUEST"
	httpForbidden        httpStatus = "403 FORBIDDEN"
	httpNotFound         httpStatus = "404 NOT_FOUND"
	httpMethodNotAllowed httpStatus = "405 METHOD_NOT_ALLOWED"
	httpLengthRequired   httpStatus = "411 LENGTH_REQUIRED"
	httpBodyTooLarge     httpStatus = "413 REQUEST_ENTITY_TOO_LARGE"
	httpHeadersTooLarge  httpStatus = "431 REQUEST_HEADER_FIELDS_TOO_LARGE"
	httpServerError      httpStatus = "500 INTERNAL_SERVER_ERROR"
	httpUnavailable      httpStatus = "503 SERVICE_UNAVAILABLE"
)

// httpRequest is a request; its fields are parts of the input.
type httpRequest struct {
	submission
	http11 bool // the version is HTTP/1.1
	head   bool // the method is HEAD: the answer has no body
	length int  // length of the body

	traceparent, tracestate []byte
}

// parseHTTP parses a request. It is incomplete until done is true. A status other than zero refuses it, possibly before
// it is complete.
func parseHTTP(in []byte, maxBody int) (r httpRequest, status httpStatus, done bool) {
	in = bytes.TrimLeft(in, "\r\n")
	line, rest, ok := cutLine(in)
	if !ok {
		return r, tooLong(in), false
	}
	if status = r.parseRequestLine(line); status != "" {
		return r, status, true
	}
	hasBody := bytes.HasPrefix(line, []byte("P")) // POST and PUT
	r.unique = []byte(uniqueByWorkload)
	for {
		if line, rest, ok = cutLine(rest); !ok {
			return r, tooLong(in), false
		}
		if len(line) == 0 {
			break
		}
		if status = r.parseHeader(line, hasBody); status != "" {
			return r, status, true
		}
	}
	switch {
	case len(in)-len(rest) > httpHeaderMax:
		return r, httpHeadersTooLarge, true
	case len(r.function) == 0 && !r.head:
		return r, httpNotFound, true
	case r.length > maxBody:
		return r, httpBodyTooLarge, true
	case len(rest) < r.length:
		return r, "", false
	}
	r.workload = rest[:r.length]
	return r, "", true
}

// tooLong refuses headers that exceed their limit before they end.
func tooLong(in []byte) httpStatus {
	if len(in) > httpHeaderMax {
		return httpHeadersTooLarge
	}
	return ""
}

// cutLine cuts the first line off, which ends with LF or CR LF.
func cutLine(in []byte) (line, rest []byte, ok bool) {
	line, rest, ok = bytes.Cut(in, []byte{'\n'})
	return bytes.TrimSuffix(line, []byte{'\r'}), rest, ok
}

// parseRequestLine parses the method and the function. As in gearmand, the function is the whole path without leading
// slashes, including escapes and query.
func (r *httpRequest) parseRequestLine(line []byte) httpStatus {
	method, rest, _ := bytes.Cut(line, []byte{' '})
	path, version, ok := bytes.Cut(bytes.TrimLeft(rest, " "), []byte{' '})
	version = bytes.TrimLeft(version, " ")
	r.http11 = string(version) == "HTTP/1.1"
	if !ok || !r.http11 && string(version) != "HTTP/1.0" || bytes.IndexByte(path, 0) >= 0 {
		return httpBadRequest
	}
	switch string(method) {
	case "GET", "POST", "PUT":
	case "HEAD":
		r.head = true
	default:
		return httpMethodNotAllowed
	}
	r.function = bytes.TrimLeft(path, "/")
	return ""
}

// parseHeader parses one header. Like gearmand, it ignores unknown headers and unknown values.
func (r *httpRequest) parseHeader(line []byte, hasBody bool) httpStatus {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimSpace(value)
	is := func(b []byte, text string) bool { return bytes.EqualFold(b, []byte(text)) }
	switch {
	case is(name, "Content-Length") && hasBody:
		n, err := strconv.ParseUint(string(value), 10, 31)
		if err != nil {
			return httpBadRequest
		}
		r.length = int(n)
	case is(name, "Transfer-Encoding") && hasBody:
		return httpLengthRequired
	case is(name, "X-Gearman-Unique") && bytes.IndexByte(value, 0) >= 0: // it would end the field that workers receive
		return httpBadRequest
	case is(name, "X-Gearman-Unique") && len(value) > 0:
		r.unique = value
	case is(name, "traceparent"):
		r.traceparent = value
	case is(name, "tracestate"):
		r.tracestate = value
	case is(name, "X-Gearman-Background") && is(value, "true"):
		r.background = true
	case is(name, "X-Gearman-Priority") && is(value, "high"):
		r.priority = 1
	case is(name, "X-Gearman-Priority") && is(value, "low"):
		r.priority = -1
	}
	return ""
}
