package frontends

import "bytes"

// IsHTTP reports whether a line is the first of an HTTP request, or its Host header. A front-end with a line protocol
// closes the connection at such a line. Otherwise a hostile web page could make the visitor's browser send a request to
// this port, and the body of the request would run as commands.
func IsHTTP(line []byte) bool {
	const header, version = "host:", "HTTP/"
	if len(line) >= len(header) && bytes.EqualFold(line[:len(header)], []byte(header)) {
		return true
	}
	_, target, _ := bytes.Cut(line, []byte{' '})
	target = bytes.TrimLeft(target, " ")
	target, last, _ := bytes.Cut(target, []byte{' '})
	if len(target) == 0 || !bytes.HasPrefix(bytes.TrimLeft(last, " "), []byte(version)) {
		return false
	}
	return target[0] == '/' || target[0] == '*' || bytes.ContainsAny(target, ":")
}
