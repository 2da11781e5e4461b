package faktory

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

func TestGreetingHasNoSpaces(t *testing.T) {
	t.Parallel()
	if got := string(challenge{}.appendGreeting(nil)); got != "+HI {\"v\":2}\r\n" {
		t.Errorf("got %q", got)
	}
	c := newChallenge(0xfedcba9876543210, 17)
	if got, want := string(
		c.appendGreeting(nil),
	), "+HI {\"v\":2,\"i\":4017,\"s\":\"7f6e5d4c3b2a1908\"}\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHashRoundsAreInTheRangeOfTheReference(t *testing.T) {
	t.Parallel()
	for _, r := range []uint32{0, 1, 4095, 4096, ^uint32(0)} {
		if n := newChallenge(1, r).rounds; n < 4000 || n > 8095 {
			t.Errorf("%d rounds", n)
		}
	}
}

func TestHashRoundsDependOnTheVersion(t *testing.T) {
	t.Parallel()
	c := challenge{salt: "abc123", rounds: 3}
	once := sha256.Sum256([]byte("secretabc123"))
	twice := sha256.Sum256(once[:])
	thrice := sha256.Sum256(twice[:])
	single, full := hex.EncodeToString(once[:]), hex.EncodeToString(thrice[:])
	for _, h := range []struct {
		name string
		hash string
		v    int64
		want bool
	}{
		{"version 2, all rounds", full, 2, true},
		{"version 3, all rounds", full, 3, true},
		{"version 2, one round", single, 2, false},
		{"version 1, one round", single, 1, true},
		{"no version, one round", single, 0, true},
		{"version 1, all rounds", full, 1, false},
		{"upper case", strings.ToUpper(full), 2, false},
		{"nothing", "", 2, false},
		{"the password itself", "secret", 2, false},
	} {
		if got := c.accepts(hello{PwdHash: h.hash, V: h.v}, "secret"); got != h.want {
			t.Errorf("%s: %v", h.name, got)
		}
	}
}

func TestHello(t *testing.T) {
	t.Parallel()
	h, err := parseHello([]byte(
		`HELLO {"hostname":"h","wid":"w","pid":12,"labels":["a"],"username":"u","pwdhash":"p","v":2,"other":[1]}`))
	if err != nil || h.Hostname != "h" || h.WID != "w" || h.PID != 12 || h.Labels[0] != "a" || h.V != 2 ||
		h.PwdHash != "p" {
		t.Errorf("%+v, %v", h, err)
	}
	if _, err := parseHello([]byte(`HELLO {}`)); err != nil {
		t.Errorf("an empty hello was refused: %v", err)
	}
	if h, err = parseHello([]byte("HELLO {\"hostname\":\"b\xfcro\",\"wid\":\"\xff\"}")); err != nil ||
		h.Hostname != "b\ufffdro" || h.WID != "\ufffd" {
		t.Errorf("bytes that are no UTF-8: %+v, %v", h, err)
	}
	for _, line := range []string{
		"", "GET / HTTP/1.1", "HELLO", "HELLO  {}", "hello {}", "HELLO []", `HELLO {"wid":1}`, `HELLO {"v":"2"}`,
		"HELLO {",
		"HELLO {} x", "HELLO {\xff}", `HELLO {"wid":"` + strings.Repeat("w", 2000) + `"}`,
	} {
		if _, err := parseHello([]byte(line)); err == nil {
			t.Errorf("taken: %.60s", line)
		}
	}
}

func FuzzHello(f *testing.F) {
	f.Add([]byte(`HELLO {"wid":"w","v":2}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if h, err := parseHello(line); err == nil && len(h.WID) > maxWorkerIDBytes {
			t.Errorf("a wid of %d bytes", len(h.WID))
		}
	})
}
