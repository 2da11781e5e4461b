package process

import (
	"reflect"
	"testing"

	"broker/core"
)

// A node that follows takes every table too, because it serves with these settings once it leads.
func TestReloadTakesEveryTable(t *testing.T) {
	t.Parallel()
	var before, fresh Settings
	from := reflect.ValueOf(&fresh.Config).Elem()
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
	fresh.policies, fresh.limits = map[policyName]core.JobPolicy{}, map[core.LimitID]core.Limit{}
	fresh.sharings = map[string]core.Sharing{}
	takeTables(&before, &fresh)
	if before.policies == nil || before.limits == nil || before.sharings == nil {
		t.Error("what was read from the tables is not taken")
	}
	for _, name := range names {
		if reflect.ValueOf(before.Config).FieldByName(name).IsNil() {
			t.Errorf("%s is not taken", name)
		}
	}
}
