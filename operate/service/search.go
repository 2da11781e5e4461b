package service

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// A search is a line such as
//
//	queue:mail error:"Net::ReadTimeout" died:1h invoice 4711
//
// Each word with a colon is a condition; FilterFields has their names. died:1h means in the last hour, died:2d..1h
// between two days and an hour ago, due:1h within the next hour. Words without a colon are searched in the columns of
// lists and in bodies. A value or text in double quotes may contain spaces and colons.

// SearchWords are the words of a search, in the order of forms.
func SearchWords() (words []string) {
	for i := range FilterFields {
		if w := FilterFields[i].Word; w != "" {
			words = append(words, w)
		}
	}
	return words
}

// ParseSearch reads a search into the parameters of a filter, as in a query of the API.
func ParseSearch(search string) (url.Values, error) {
	query := url.Values{}
	var text []string
	rest := strings.TrimSpace(search)
	for rest != "" {
		var name, value string
		name, value, rest = nextTerm(rest)
		if name == "" {
			text = append(text, value)
			continue
		}
		field := FieldOfWord(name)
		switch {
		case field == nil:
			return nil, invalid("q", "%q is not one of %s; text with a colon needs double quotes", name,
				strings.Join(SearchWords(), ", "))
		case value == "":
			return nil, invalid("q", "%s: needs a value", name)
		case field.IsTime() && field.Word == name:
			setRange(query, name, value)
		case field.Name == "state":
			query["state"] = append(query["state"], strings.Split(value, ",")...)
		case !field.Many() && query.Has(field.Name):
			return nil, invalid("q", "%s: may be given once", name)
		default:
			query.Add(field.Name, value)
		}
	}
	if len(text) > 0 {
		query.Set("anywhere", strings.Join(text, " "))
	}
	return query, nil
}

// Search adds the conditions of a search to a filter, which must not have them already.
func (f *JobFilter) Search(search string, now time.Time) error {
	query, err := ParseSearch(search)
	if err != nil {
		return err
	}
	for i := range FilterFields {
		field := &FilterFields[i]
		values, old := query[field.Name], field.values(f)
		switch {
		case len(values) == 0:
			continue
		case len(old) > 0 && !field.Many():
			return invalid("q", "%s is given beside q too", field.Name)
		}
		if err := field.Set(f, append(slices.Clone(old), values...), now); err != nil {
			return err
		}
	}
	return nil
}

// setRange adds a condition on a time: a duration up to now (for due: from now), an instant as the beginning, or two of
// them with dots in between.
func setRange(query url.Values, name, value string) {
	from, to, isRange := strings.Cut(value, "..")
	if _, isSpan := parseSpan(value); name == "due" && isSpan && !isRange {
		from, to = "", "-"+value
	}
	if from != "" {
		query.Set(name+"_from", from)
	}
	if to != "" {
		query.Set(name+"_to", to)
	}
}

// nextTerm takes the first condition or text from a search. name is empty for text.
func nextTerm(s string) (name, value, rest string) {
	if i := strings.IndexAny(s, ": \""); i > 0 && s[i] == ':' {
		name, s = s[:i], s[i+1:]
	}
	if strings.HasPrefix(s, `"`) {
		value, rest, _ = strings.Cut(s[1:], `"`)
	} else {
		value, rest, _ = strings.Cut(s, " ")
	}
	return name, value, strings.TrimSpace(rest)
}
