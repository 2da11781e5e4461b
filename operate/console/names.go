package console

import (
	"net/url"
	"strings"
)

// pathEscape writes a name as a segment of a path. Browsers take the names "." and "..", also when they are escaped, for steps in the
// path: these get a tilde before them, and so do the names that look like that.
func pathEscape(name string) string {
	if isDots(name) {
		name = "~" + name
	}
	return url.PathEscape(name)
}

// named is the name in a path that pathEscape made.
func (r *request) named(part string) string {
	name := r.PathValue(part)
	if bare, ok := strings.CutPrefix(name, "~"); ok && isDots(bare) {
		return bare
	}
	return name
}

// isDots reports whether a name is one or two dots behind any number of tildes.
func isDots(name string) bool {
	dots := strings.TrimLeft(name, "~")
	return dots == "." || dots == ".."
}

// jobName is the reference to a job as people read it: a number says that it is one.
func jobName(ref string) string {
	if n, ok := strings.CutPrefix(ref, "seq:"); ok {
		return "job " + n
	}
	return ref
}
