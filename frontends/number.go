package frontends

// ParseUint parses a decimal number up to limit. It accepts digits only.
func ParseUint(digits []byte, limit uint64) (n uint64, ok bool) {
	for _, c := range digits {
		d := uint64(c - '0')
		if c < '0' || c > '9' || d > limit || n > (limit-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, len(digits) > 0
}
