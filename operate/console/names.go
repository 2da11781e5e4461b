package console

import (
	"net/url"
	"strings"

	"broker/core"
)

// pathEscape escapes a name for a segment of a path. Browsers treat the names "." and "..", also escaped, as steps in
// the path. Such names, and names that look like an escaped one, get a tilde in front.
func pathEscape(name string) string {
	if isDots(name) {
		name = "~" + name
	}
	return url.PathEscape(name)
}

// named decodes a name that pathEscape has encoded.
func (r *request) named(part string) string {
	name := r.PathValue(part)
	if bare, ok := strings.CutPrefix(name, "~"); ok && isDots(bare) {
		return bare
	}
	return name
}

// isDots reports whether a name consists of one or two dots after any number of tildes.
func isDots(name string) bool {
	dots := strings.TrimLeft(name, "~")
	return dots == "." || dots == ".."
}

// jobName is the displayed reference to a job: a number gets a prefix.
func jobName(ref string) string {
	if n, ok := strings.CutPrefix(ref, "seq:"); ok {
		return "job " + n
	}
	return ref
}

// protocolLabel returns the written name of a protocol.
func protocolLabel(name string) string {
	if p, known := core.ParseProtocol(name); known {
		return p.Title()
	}
	return name
}

// protocolNames lists the protocols of clients.
var protocolNames = core.ProtocolNames()
