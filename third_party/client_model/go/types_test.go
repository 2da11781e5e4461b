package io_prometheus_client_test

import (
	"reflect"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// Every field has a getter that returns zero of nil and of an empty struct, and else what is set.
func TestGetters(t *testing.T) {
	for _, message := range []any{
		&dto.LabelPair{}, &dto.Gauge{}, &dto.Counter{}, &dto.Quantile{}, &dto.Summary{}, &dto.Untyped{}, &dto.Histogram{}, &dto.Bucket{},
		&dto.BucketSpan{}, &dto.Exemplar{}, &dto.Metric{}, &dto.MetricFamily{},
	} {
		v := reflect.ValueOf(message)
		for i := range v.Elem().NumField() {
			field := v.Elem().Type().Field(i)
			get := "Get" + field.Name
			for _, empty := range []reflect.Value{reflect.Zero(v.Type()), v} {
				if got := empty.MethodByName(get).Call(nil)[0]; !got.IsZero() {
					t.Errorf("%s.%s of nothing is %v", v.Type(), get, got)
				}
			}
			set := v.Elem().Field(i)
			want := reflect.Value{}
			switch {
			case field.Type.Kind() == reflect.Pointer && field.Type.Elem().Kind() != reflect.Struct:
				set.Set(reflect.New(field.Type.Elem()))
				want = set.Elem()
				if want.Kind() == reflect.String {
					want.SetString("x")
				} else if want.CanFloat() {
					want.SetFloat(3)
				} else if want.CanUint() {
					want.SetUint(3)
				} else {
					want.SetInt(3)
				}
			case field.Type.Kind() == reflect.Pointer:
				set.Set(reflect.New(field.Type.Elem()))
				want = set
			default:
				set.Set(reflect.MakeSlice(field.Type, 1, 1))
				want = set
			}
			if got := v.MethodByName(get).Call(nil)[0]; !reflect.DeepEqual(got.Interface(), want.Interface()) {
				t.Errorf("%s.%s is %v, not %v", v.Type(), get, got, want)
			}
		}
	}
}

func TestNamesOfKinds(t *testing.T) {
	for number, name := range dto.MetricType_name {
		if kind := dto.MetricType(number); kind.String() != name || dto.MetricType_value[name] != number || *kind.Enum() != kind {
			t.Errorf("kind %d: %s", number, kind)
		}
	}
}
