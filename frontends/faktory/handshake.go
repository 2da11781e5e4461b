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
	"time"
)

// Bounds of a handshake: how long it may take, and how long its one line may be.
const (
	handshakeFor     = 2 * time.Second
	maxHelloBytes    = 64 << 10
	maxWorkerIDBytes = 1024
)

// The number of hash rounds asked of clients, as the reference draws it.
const (
	minRounds  = 4000
	roundRange = 4096
)

// hello is the client's first word. All members are optional, others are ignored.
type hello struct {
	Hostname string   `json:"hostname"`
	WID      string   `json:"wid"`
	PID      int64    `json:"pid"`
	Labels   []string `json:"labels"`
	Username string   `json:"username"`
	PwdHash  string   `json:"pwdhash"`
	V        int64    `json:"v"`
}

// helloStart is how the first line begins; whatever else a stranger sends is answered with an error.
var helloStart = []byte("HELLO {")

// parseHello reads the first line. Bytes that are no UTF-8 become U+FFFD, as with BEAT: a host's name may be anything. The
// error is for the client.
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

// challenge is what a server with a password asks of one connection; the zero challenge asks nothing.
type challenge struct {
	salt   string
	rounds int
}

// newChallenge makes one of two random numbers.
func newChallenge(salt uint64, rounds uint32) challenge {
	return challenge{salt: strconv.FormatUint(salt>>1, 16), rounds: minRounds + int(rounds%roundRange)}
}

// appendGreeting appends the server's first line.
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

// admits checks the hash that a client sent. A client before version 2 hashes once only.
func (c challenge) admits(h hello, password string) bool {
	rounds := c.rounds
	if h.V < 2 {
		rounds = 1
	}
	want := passwordHash(password, c.salt, rounds)
	return subtle.ConstantTimeCompare([]byte(h.PwdHash), []byte(want)) == 1
}

// passwordHash is what a client sends in place of the password.
func passwordHash(password, salt string, rounds int) string {
	sum := sha256.Sum256([]byte(password + salt))
	for range rounds - 1 {
		sum = sha256.Sum256(sum[:])
	}
	return hex.EncodeToString(sum[:])
}
