package frontends

import "bytes"

// IsHTTP reports whether a line is the first of an HTTP request, or its Host header. A front-end whose protocol is made of
// lines closes the connection at such a line: a web page can have the browser of its reader send a request to a port of this
// machine, and the body of that request would run as commands.
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
