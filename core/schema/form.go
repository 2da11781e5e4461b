package schema

import (
	"encoding/json"
	"errors"
	"strings"
)

// Field is a field of a form.
type Field struct {
	Name, Label string
	Value       string
	Example     string   // in an empty field
	Choices     []Choice // a list to choose from; nil: a text
	Number      bool     // a whole number
}

// names of fields that are a part of a setting
const (
	fieldWaits, fieldMax, fieldJitter, fieldMoveTo = "waits", "backoff_max", "jitter", "move_to"
)

// Fields are the fields of a form with values of the API.
func Fields(rows []Row, members map[string]json.RawMessage) (fields []Field) {
	for i := range rows {
		r := &rows[i]
		f, value := Field{Name: r.Base(), Label: r.Label, Number: r.Unit == Count}, members[r.Name]
		if value != nil && r.Unit != Waits {
			f.Value = r.Text(value)
		}
		switch r.Unit {
		case Waits:
			b := backoffOf(value)
			f.Choices, f.Value = Kinds, b.Kind
			fields = append(fields, f,
				Field{Name: fieldWaits, Label: "Wait, or list", Value: b.Waits, Example: "10s, 1m, 10m"},
				Field{Name: fieldMax, Label: "Wait at most", Value: b.Max, Example: "1h"},
				Field{Name: fieldJitter, Label: "Random part, 0 to 1", Value: b.Jitter})
			continue
		case Ending:
			moveTo := Field{Name: fieldMoveTo, Label: "That queue"}
			var moves bool
			if moveTo.Value, moves = strings.CutPrefix(f.Value, MoveWord+":"); moves {
				f.Value = MoveWord
			} else {
				moveTo.Value = ""
			}
			f.Choices = Ends
			fields = append(fields, f, moveTo)
			continue
		case Word:
			for _, word := range r.Words {
				f.Choices = append(f.Choices, Choice{word, word})
			}
		case Seconds:
			f.Example = "15m"
		case Count, Rate:
		}
		fields = append(fields, f)
	}
	return fields
}

// ReadFields reads the fields of a form for the API. Settings whose fields are empty are null. Errors are of type
// *Error; their field is one of the form.
func ReadFields(rows []Row, get func(field string) string) (map[string]json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	for i := range rows {
		r := &rows[i]
		text, value := strings.TrimSpace(get(r.Base())), json.RawMessage("null")
		var err error
		switch {
		case text == "":
		case r.Unit == Waits:
			b := Backoff{Kind: text, Waits: get(fieldWaits), Max: get(fieldMax), Jitter: get(fieldJitter)}
			value, err = b.JSON()
		case r.Unit == Ending && text == MoveWord:
			value, err = r.Value(MoveWord + ":" + strings.TrimSpace(get(fieldMoveTo)))
		default:
			value, err = r.Value(text)
		}
		if err != nil {
			return nil, err
		}
		members[r.Name] = value
	}
	return members, nil
}

// FieldOf returns the field and the sentence of an error of this package.
func FieldOf(err error) (field, detail string, ok bool) {
	var wrong *Error
	if !errors.As(err, &wrong) {
		return "", "", false
	}
	return wrong.Field, wrong.Detail, true
}
