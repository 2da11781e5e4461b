package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
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
