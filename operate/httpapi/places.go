package httpapi

import (
	"reflect"
	"strings"
)

// body is the place of the members of a request's body.
const body = "body"

// places says where the fields of a request are: body, path, query or header, by the name of the field. The body itself
// has the empty name. The service names fields without knowing of places.
type places map[string]string

// placesOf reads the tags of an input of huma. A name that the body and a parameter have in common means the body.
func placesOf(input reflect.Type) places {
	at := make(places)
	for i := range input.NumField() {
		f := input.Field(i)
		if f.Name == "Body" {
			at.addMembers(f.Type)
			continue
		}
		for _, place := range []string{"path", "query", "header"} {
			name, _, _ := strings.Cut(f.Tag.Get(place), ",")
			at.add(name, place)
		}
		if f.Anonymous {
			for name, place := range placesOf(f.Type) {
				at.add(name, place)
			}
		}
	}
	return at
}

// add adds the place of a field, unless the field is in the body.
func (at places) add(name, place string) {
	if at[name] != body && (name != "" || place == body) {
		at[name] = place
	}
}

// addMembers adds the body and the members of its type.
func (at places) addMembers(t reflect.Type) {
	at.add("", body)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			at.addMembers(f.Type)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		at.add(name, body)
	}
}

// location is the place of a field with its path, such as body.jobs[3].queue; empty: the request has no such field.
func (at places) location(field string) string {
	name := field
	if end := strings.IndexAny(field, ".["); end >= 0 {
		name = field[:end]
	}
	place := at[name]
	if place == "" || field == "" {
		return place
	}
	return place + "." + field
}
