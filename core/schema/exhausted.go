package schema

import (
	"encoding/json"
	"slices"
	"strings"

	"broker/core"
)

// Exhausted is what happens to a job after its last try.
type Exhausted struct {
	Then   core.Exhausted
	MoveTo string // of a policy: the queue to which the job moves instead
}

// Choice is a word with a label for people.
type Choice struct{ Word, Label string }

// Ends are the words for what happens after the last try. A job may say all but MoveWord, for which it has no field.
var Ends = []Choice{
	{"dead", "to the dead jobs"}, {"drop", "failed, and not kept"}, {MoveWord, "to a queue"},
}

// MoveWord is the word for a move to a queue.
const MoveWord = "move"

var ends = [...]struct {
	word, was string
}{core.ExhaustedBury: {"dead", "bury"}, core.ExhaustedFinish: {"drop", "finish"}}

// EndOf returns what a word says, dead or drop; the earlier words bury and finish say the same.
func EndOf(word string) (then core.Exhausted, known bool) {
	i := slices.IndexFunc(ends[:], func(e struct{ word, was string }) bool { return e.word == word || e.was == word })
	return core.Exhausted(max(i, 0)), i >= 0
}

// readExhausted reads a word, or an object that names a queue.
func readExhausted(field string, value json.RawMessage) (end Exhausted, err error) {
	var word string
	var move struct {
		Move string `json:"move"`
	}
	if json.Unmarshal(value, &word) == nil {
		var known bool
		if end.Then, known = EndOf(word); known {
			return end, nil
		}
	} else if strict(value, &move) && move.Move != "" {
		end.MoveTo = move.Move
		return end, nil
	}
	return end, wrong(field, `on_exhausted must be "dead", "drop" or {"move": queue}`)
}

// json is the inverse of readExhausted.
func (e *Exhausted) json() json.RawMessage {
	if e.MoveTo != "" {
		return encode(map[string]string{MoveWord: strings.ToValidUTF8(e.MoveTo, "\uFFFD")})
	}
	return encode(ends[e.Then].word)
}

// text is a word, or move:QUEUE.
func (e *Exhausted) text() string {
	if e.MoveTo != "" {
		return MoveWord + ":" + e.MoveTo
	}
	return ends[e.Then].word
}

// endOfText is the inverse of text. It leaves words that it does not know to readExhausted.
func endOfText(text string) json.RawMessage {
	if queue, moves := strings.CutPrefix(text, MoveWord+":"); moves {
		return encode(map[string]string{MoveWord: queue})
	}
	return encode(text)
}
