package core

import "strings"

// MatchQueue reports whether the name of a queue matches a pattern, in which * stands for any bytes. Linear in both:
// after each star, the first position that matches is the best one.
func MatchQueue(pattern, name string) bool {
	head, pattern, starred := strings.Cut(pattern, "*")
	rest, ok := strings.CutPrefix(name, head)
	if !ok || !starred {
		return ok && rest == ""
	}
	for {
		part, after, more := strings.Cut(pattern, "*")
		if !more {
			return strings.HasSuffix(rest, part)
		}
		if _, rest, ok = strings.Cut(rest, part); !ok {
			return false
		}
		pattern = after
	}
}
