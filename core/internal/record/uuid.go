package record

// uuidDash marks the positions of the dashes in the text of a UUID.
var uuidDash = [36]bool{8: true, 13: true, 18: true, 23: true}

// packUUID returns the 16 bytes of a UUID in lower-case text with dashes. ok is false for any other spelling, so that
// uuidText restores the exact text.
func packUUID(s string) (u [16]byte, ok bool) {
	if len(s) != 36 {
		return u, false
	}
	n := 0 // hex digits so far
	for i := range len(s) {
		c := s[i]
		if uuidDash[i] {
			if c != '-' {
				return u, false
			}
			continue
		}
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		default:
			return u, false
		}
		u[n/2] = u[n/2]<<4 | c
		n++
	}
	return u, true
}

// uuidText writes the text of u into room and returns a view of it; nil allocates one. A short u gives the empty
// string.
func uuidText(u []byte, room *[36]byte) string {
	const digits = "0123456789abcdef"
	if len(u) != 16 {
		return ""
	}
	if room == nil {
		room = new([36]byte)
	}
	n := 0
	for i := range room {
		if uuidDash[i] {
			room[i] = '-'
			continue
		}
		room[i] = digits[u[n/2]>>(4-4*(n&1))&0xf]
		n++
	}
	return view(room[:])
}
