package process

import (
	"reflect"
	"testing"

	"broker/config"
)

// A node that follows takes every table too, because it serves with these settings once it leads.
func TestReloadTakesEveryTable(t *testing.T) {
	t.Parallel()
	var before, fresh config.Config
	from := reflect.ValueOf(&fresh).Elem()
	var names []string
	for i := range from.NumField() {
		switch field := from.Field(i); {
		case !field.CanSet() || from.Type().Field(i).Name == "Principals": // applyPrincipals takes them
		case field.Kind() == reflect.Slice:
			field.Set(reflect.MakeSlice(field.Type(), 1, 1))
			names = append(names, from.Type().Field(i).Name)
		case field.Kind() == reflect.Map:
			field.Set(reflect.MakeMap(field.Type()))
			names = append(names, from.Type().Field(i).Name)
		}
	}
	if len(names) < 9 {
		t.Fatalf("the settings have the tables %v only", names)
	}
	takeTables(&before, &fresh)
	for _, name := range names {
		if reflect.ValueOf(before).FieldByName(name).IsNil() {
			t.Errorf("%s is not taken", name)
		}
	}
}
