package coretest

import (
	"fmt"
	"strconv"
	"strings"
)

// parseCommand splits a line into words and options.
func parseCommand(text string) (*Command, error) {
	c := &Command{}
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimLeft(rest, " ") {
		var word string
		var err error
		if word, rest, err = cutWord(rest); err != nil {
			return nil, err
		}
		name, value, is := strings.Cut(word, "=")
		switch {
		case is && !strings.HasPrefix(word, `"`):
			if value, err = unquote(value); err != nil {
				return nil, err
			}
			c.options = append(c.options, option{name: name, value: value})
		case len(word) > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9'):
			c.options = append(c.options, option{name: word[1:], value: "yes"})
		default:
			if word, err = unquote(word); err != nil {
				return nil, err
			}
			c.Words = append(c.Words, word)
		}
	}
	if len(c.Words) == 0 {
		return nil, fmt.Errorf("%q has no word", text)
	}
	return c, nil
}

// cutWord returns the text up to the next space outside of a Go string.
func cutWord(s string) (word, rest string, err error) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == '\\' && quoted:
			i++
		case s[i] == ' ' && !quoted:
			return s[:i], s[i:], nil
		}
	}
	if quoted {
		return "", "", fmt.Errorf("unfinished string in %q", s)
	}
	return s, "", nil
}

func unquote(s string) (string, error) {
	if !strings.HasPrefix(s, `"`) {
		return s, nil
	}
	text, err := strconv.Unquote(s)
	if err != nil {
		return "", fmt.Errorf("%s: %w", s, err)
	}
	return text, nil
}
