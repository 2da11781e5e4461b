package shellword_test

import (
	"testing"

	"broker/core/shellword"
)

func TestQuote(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"/var/lib/broker-1.2": "/var/lib/broker-1.2", "": "''", "two words": "'two words'", "it's": `'it'\''s'`,
		"$HOME": "'$HOME'", "übung": "'übung'",
	} {
		if got := shellword.Quote(word); got != want {
			t.Errorf("%q becomes %s, want %s", word, got, want)
		}
	}
}
