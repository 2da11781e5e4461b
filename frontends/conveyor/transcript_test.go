package conveyor

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/redcon"

	"broker/frontends/frontendtest"
)

func TestTranscripts(t *testing.T) {
	t.Parallel()
	frontendtest.Script{Stage: setup, Encode: encodeLine}.PlayAll(t, "testdata")
}

// encodeLine turns a line of a transcript into bytes. A line that starts with a letter is a command: words separated by
// spaces. Any other line is a sequence of replies:
//
//	+OK  :1  *2  *-1   as they are
//	-ERR some text     to the end of the line
//	=word              a bulk string
//	_                  a null bulk string
//
// A word may have Go escapes. id(7) is the uuid of the seventh job. job(7,QUEUE,PAYLOAD) is the encoded job. After the
// payload, parent=7, after=7, retry=1, max=1 and at=SECOND may follow. A line that starts with raw: contains raw bytes.
func encodeLine(text string) ([]byte, error) {
	if raw, found := strings.CutPrefix(text, "raw:"); found {
		return frontendtest.Unescape(raw)
	}
	if text[0] >= 'A' && text[0] <= 'z' && text[0] != '_' {
		words := strings.Split(text, " ")
		for i := range words {
			word, err := encodeWord(words[i])
			if err != nil {
				return nil, err
			}
			words[i] = word
		}
		return encodeCommand(words...), nil
	}
	var b []byte
	for text != "" {
		if text[0] == '-' {
			return append(append(b, ids(text)...), "\r\n"...), nil
		}
		word, rest, _ := strings.Cut(text, " ")
		text = strings.TrimLeft(rest, " ")
		switch word[0] {
		case '_':
			b = redcon.AppendNull(b)
		case '=':
			bulk, err := encodeWord(word[1:])
			if err != nil {
				return nil, err
			}
			b = redcon.AppendBulkString(b, bulk)
		case '+', ':', '*':
			b = append(append(b, word...), "\r\n"...)
		default:
			return nil, fmt.Errorf("unknown reply %q", word)
		}
	}
	return b, nil
}

// encodeWord is a word of a command, or a bulk string.
func encodeWord(word string) (string, error) {
	if fields, found := strings.CutPrefix(word, "job("); found {
		return encodeJobWord(strings.Split(strings.TrimSuffix(fields, ")"), ","))
	}
	b, err := frontendtest.Unescape(ids(word))
	return string(b), err
}

var idPattern = regexp.MustCompile(`id\(\d+\)`)

// ids replaces id(N) in a text by uuids.
func ids(text string) string {
	return idPattern.ReplaceAllStringFunc(text, func(s string) string {
		n, _ := strconv.Atoi(s[len("id(") : len(s)-1])
		return idOf(n)
	})
}

func encodeJobWord(fields []string) (string, error) {
	n, err := strconv.Atoi(fields[0])
	if err != nil || len(fields) < 3 {
		return "", fmt.Errorf("not a job: %q", fields)
	}
	m := jobIn(n, fields[1], fields[2])
	for _, f := range fields[3:] {
		name, value, _ := strings.Cut(f, "=")
		n, err := strconv.Atoi(value)
		if err != nil {
			return "", err
		}
		switch name {
		case "parent":
			m.parent = idOf(n)
		case "after":
			m.predecessor = idOf(n)
		case "retry":
			m.retry = uint64(n)
		case "max":
			m.maxRetries = uint64(n)
		case "at":
			m.runAt = time.Unix(int64(n), 0)
		default:
			return "", fmt.Errorf("unknown field %q", f)
		}
	}
	return m.encode(), nil
}
