package faktory

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"broker/core"
)

// Bounds of a handshake.
const (
	handshakeFor     = 2 * time.Second
	maxHelloBytes    = 64 << 10
	maxWorkerIDBytes = 1024
)

// The number of hash rounds is random, in the same range as in the reference server.
const (
	minRounds  = 4000
	roundRange = 4096
)

// hello is the argument of HELLO. All members are optional; unknown ones are ignored.
type hello struct {
	Hostname string   `json:"hostname"`
	WID      string   `json:"wid"`
	PID      int64    `json:"pid"`
	Labels   []string `json:"labels"`
	Username string   `json:"username"`
	PwdHash  string   `json:"pwdhash"`
	V        int64    `json:"v"`
}

// version is the version of the worker's program, from the label version:X or version=X; empty: it has no such label.
func (h *hello) version() string {
	for _, label := range h.Labels {
		for _, prefix := range [...]string{"version:", "version="} {
			if version, ok := strings.CutPrefix(label, prefix); ok {
				return core.CutText(strings.TrimSpace(version), core.MaxWorkerVersion)
			}
		}
	}
	return ""
}

// helloStart is the start of the first line.
var helloStart = []byte("HELLO {")

// parseHello reads the first line. It replaces invalid UTF-8, because a host name may contain any bytes. The error is
// sent to the client.
func parseHello(line []byte) (hello, error) {
	if !bytes.HasPrefix(line, helloStart) {
		return hello{}, errors.New("expected HELLO {...} as the first command")
	}
	arg := line[len(helloStart)-1:]
	var h hello
	if err := json.Unmarshal(arg, &h); err != nil {
		return hello{}, fmt.Errorf("invalid HELLO: %s", referenceTerms.Replace(err.Error()))
	}
	if len(h.WID) > maxWorkerIDBytes {
		return hello{}, fmt.Errorf("invalid HELLO: wid is longer than %d bytes", maxWorkerIDBytes)
	}
	return h, nil
}

// challenge is the salt and the number of rounds for one connection. The zero value means that no password is needed.
type challenge struct {
	salt   string
	rounds int
}

// newChallenge builds a challenge from random numbers.
func newChallenge(salt uint64, rounds uint32) challenge {
	return challenge{salt: strconv.FormatUint(salt>>1, 16), rounds: minRounds + int(rounds%roundRange)}
}

// appendGreeting appends the HI line.
func (c challenge) appendGreeting(b []byte) []byte {
	b = append(b, `+HI {"v":2`...)
	if c.rounds > 0 {
		b = append(b, `,"i":`...)
		b = strconv.AppendInt(b, int64(c.rounds), 10)
		b = append(b, `,"s":"`...)
		b = append(b, c.salt...)
		b = append(b, '"')
	}
	return append(b, "}\r\n"...)
}

// accepts checks the hash that a client sent. Clients before version 2 hash once.
func (c challenge) accepts(h hello, password string) bool {
	rounds := c.rounds
	if h.V < 2 {
		rounds = 1
	}
	if len(h.PwdHash) != hex.EncodedLen(sha256.Size) {
		return false
	}
	want := passwordHash(password, c.salt, rounds)
	return subtle.ConstantTimeCompare([]byte(h.PwdHash), []byte(want)) == 1
}

// passwordHash is the hash that a client sends instead of the password.
func passwordHash(password, salt string, rounds int) string {
	sum := sha256.Sum256([]byte(password + salt))
	for range rounds - 1 {
		sum = sha256.Sum256(sum[:])
	}
	return hex.EncodeToString(sum[:])
}
