package schema

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// timeOf reads what ParseSpan reads, or a number of seconds without a unit.
func timeOf(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		return spanOf(s)
	}
	return ParseSpan(text)
}

// ParseSpan reads a time such as 90s, 15m or 2d.
func ParseSpan(text string) (time.Duration, error) {
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is no number of days", days)
		}
		return spanOf(n * (24 * time.Hour).Seconds())
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time", text)
	}
	return d, nil
}

// spanOf is a number of seconds. One that no duration can hold is an error, and so is NaN.
func spanOf(s float64) (time.Duration, error) {
	if !(s >= -longest*10 && s <= longest*10) {
		return 0, fmt.Errorf("%v seconds are too many", s)
	}
	return durationOf(s), nil
}

// Span is a time as ParseSpan reads it, without units that are zero: 15m and not 15m0s.
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	if d != 0 && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if d > 0 && strings.HasSuffix(text, zero) {
			text = text[:len(text)-len("0s")]
		}
	}
	return text
}

// Value reads a text of a form or a flag, and returns it for the API, which checks its bounds. Errors are of type
// *Error; the field is the Base of the row, or one of a Backoff.
func (r *Row) Value(text string) (json.RawMessage, error) {
	text = strings.TrimSpace(text)
	switch r.Unit {
	case Count:
		if n, err := strconv.ParseUint(text, 10, 32); err == nil {
			return encode(n), nil
		}
		return nil, r.outside(r.Base())
	case Rate:
		if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 && n <= r.High {
			return encode(n), nil
		}
		return nil, r.outside(r.Base())
	case Seconds:
		if d, err := timeOf(text); err == nil && d >= 0 {
			return encode(d.Seconds()), nil
		}
		return nil, wrong(r.Base(), "%q is not a time such as 90s, 15m or 2d", text)
	case Ending:
		return endOfText(text), nil
	case Waits:
		return backoffOfText(text).JSON()
	case Word:
	}
	return encode(text), nil
}

// backoffOfText reads a list of waits, or kind:wait[:max[:jitter]].
func backoffOfText(text string) *Backoff {
	parts := strings.SplitN(text, ":", 4)
	if len(parts) == 1 {
		return &Backoff{Kind: WaitList, Waits: text}
	}
	parts = append(parts, "", "")
	return &Backoff{Kind: parts[0], Waits: parts[1], Max: parts[2], Jitter: parts[3]}
}

// JoinBackoff adds the longest wait and the random part, which may be empty, to the text kind:wait of a backoff.
func JoinBackoff(text, longest, jitter string) string { return text + ":" + longest + ":" + jitter }

// Text is a value of the API as Value reads it; a backoff is for people only.
func (r *Row) Text(value json.RawMessage) string {
	var n float64
	var word string
	switch {
	case r.Unit == Waits:
		b := backoffOf(value)
		return b.String()
	case r.Unit == Ending:
		end, _ := readExhausted("", value)
		return end.text()
	case json.Unmarshal(value, &word) == nil:
		return word
	case json.Unmarshal(value, &n) != nil:
		return string(value)
	case r.Unit == Seconds:
		return Span(durationOf(n))
	}
	return strconv.FormatFloat(n, 'f', -1, 64)
}

// Sentence says the values of settings for people; settings that are absent or 0 say nothing unless zeros does.
func Sentence(rows []Row, members map[string]json.RawMessage, zeros bool) string {
	var parts []string
	for i := range rows {
		r := &rows[i]
		value, there := members[r.Name]
		if !there || string(value) == "null" || !zeros && string(value) == "0" {
			continue
		}
		if r.Says == "" {
			parts = append(parts, r.Flag()+" "+r.Text(value))
		} else {
			parts = append(parts, fmt.Sprintf(r.Says, r.Text(value)))
		}
	}
	return strings.Join(parts, ", ")
}

// Members are the settings of a Policy or a Throttle by their names.
func Members(of any) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(encode(of), &members); err != nil {
		panic("schema: settings are no object: " + err.Error())
	}
	return members
}

// encode returns a value in JSON; a value that cannot be encoded is a bug.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("schema: a setting cannot be encoded: " + err.Error())
	}
	return b
}
