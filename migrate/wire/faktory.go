package wire

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
)

// ErrNotFaktory means that a server has not greeted as Faktory does.
var ErrNotFaktory = errors.New("the server does not speak Faktory")

// maxIterations limits the hash rounds for a password that a server may ask for. Faktory asks for at most 9,000.
const maxIterations = 100_000

// Hello returns the HELLO line, without its end, that replies to a server's greeting HI {...}. fields are its members
// beside the version and the hash of the password. secret reports whether the server wants a password.
func Hello(greeting, password string, fields map[string]any) (line string, secret bool, err error) {
	var asked struct {
		Iterations int    `json:"i"`
		Salt       string `json:"s"`
	}
	text, isHi := bytes.CutPrefix([]byte(greeting), []byte("HI "))
	if !isHi || json.Unmarshal(text, &asked) != nil || asked.Iterations > maxIterations {
		return "", false, ErrNotFaktory
	}
	hello := map[string]any{"v": 2}
	maps.Copy(hello, fields)
	delete(hello, "pwdhash")
	if asked.Salt != "" {
		sum := sha256.Sum256([]byte(password + asked.Salt))
		for range asked.Iterations - 1 {
			sum = sha256.Sum256(sum[:])
		}
		hello["pwdhash"] = hex.EncodeToString(sum[:])
	}
	members, err := json.Marshal(hello)
	return "HELLO " + string(members), asked.Salt != "", err
}

// ReadFaktory reads a reply as it is on the wire: a line, or a string with its length before it.
func ReadFaktory(in *bufio.Reader) ([]byte, error) {
	line, err := ReadLine(in, MaxLine)
	if err != nil || line[0] != '$' {
		return line, err
	}
	size, err := strconv.Atoi(string(bytes.TrimRight(line[1:], "\r\n")))
	if err != nil || size > MaxMessage {
		return nil, ErrFraming
	}
	if size < 0 {
		return line, nil
	}
	body, err := ReadFull(in, size+len("\r\n"))
	return append(line, body...), err
}

// FaktoryText is the content of a reply; empty for a null string.
func FaktoryText(reply []byte) []byte {
	line, rest, _ := bytes.Cut(reply, []byte("\r\n"))
	if len(line) > 0 && line[0] == '$' {
		return bytes.TrimSuffix(rest, []byte("\r\n"))
	}
	return line[min(1, len(line)):]
}

// IsFaktoryError reports whether a reply is an error.
func IsFaktoryError(reply []byte) bool { return len(reply) > 0 && reply[0] == '-' }
