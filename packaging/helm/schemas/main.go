// Program schemas writes JSON schemas of the objects that the chart makes, for kubeconform, from the Go types of
// Kubernetes and of the Prometheus operator. Fields that the types do not have are refused, and fields that the types
// never leave out are required.
//
//	go run . DIR
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// objects are the kinds with the apiVersion that each must have.
var objects = map[string]any{
	"v1 ConfigMap":                  core.ConfigMap{},
	"v1 Secret":                     core.Secret{},
	"v1 Service":                    core.Service{},
	"apps/v1 StatefulSet":           apps.StatefulSet{},
	"policy/v1 PodDisruptionBudget": policy.PodDisruptionBudget{},

	"monitoring.coreos.com/v1 ServiceMonitor": monitoring.ServiceMonitor{},
}

type schema map[string]any

// special are the types whose JSON differs from their Go fields.
var special = map[reflect.Type]schema{
	reflect.TypeFor[resource.Quantity]():  {"type": []string{"string", "number"}},
	reflect.TypeFor[intstr.IntOrString](): {"type": []string{"string", "integer"}},
	reflect.TypeFor[meta.Time]():          {"type": []string{"string", "null"}},
	reflect.TypeFor[meta.FieldsV1]():      {"type": "object"},
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: schemas DIR")
		os.Exit(2)
	}
	for name, object := range objects {
		if err := write(os.Args[1], name, object); err != nil {
			fmt.Fprintln(os.Stderr, "schemas:", err)
			os.Exit(1)
		}
	}
}

func write(dir, name string, object any) error {
	version, kind, _ := strings.Cut(name, " ")
	w := writer{definitions: map[string]schema{}}
	root := w.object(reflect.TypeOf(object))
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["definitions"] = w.definitions
	properties := root["properties"].(map[string]schema)
	properties["apiVersion"], properties["kind"] = schema{"const": version}, schema{"const": kind}
	root["required"] = append(root["required"].([]string), "apiVersion", "kind", "metadata")
	text, err := json.Marshal(root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, strings.ToLower(kind)+".json"), text, 0o644)
}

// writer keeps the schemas of the named types that are in use.
type writer struct{ definitions map[string]schema }

// of is the schema of a type.
func (w writer) of(t reflect.Type) schema {
	if s, ok := special[t]; ok {
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.of(t.Elem())
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return schema{"type": "number"}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint32, reflect.Uint64:
		return schema{"type": "integer"}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": w.of(t.Elem())}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return schema{"type": "string"}
		}
		return schema{"type": "array", "items": w.of(t.Elem())}
	case reflect.Struct:
		name := strings.NewReplacer("/", ".", "~", "").Replace(t.PkgPath() + "." + t.Name())
		if _, ok := w.definitions[name]; !ok {
			w.definitions[name] = nil // types may contain themselves
			w.definitions[name] = w.object(t)
		}
		return schema{"$ref": "#/definitions/" + name}
	}
	panic("no schema for " + t.String())
}

// object is the schema of a struct.
func (w writer) object(t reflect.Type) schema {
	properties, required := map[string]schema{}, []string{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case name == "" && field.Anonymous:
			inner := w.object(deref(field.Type))
			for name, s := range inner["properties"].(map[string]schema) {
				properties[name] = s
			}
			required = append(required, inner["required"].([]string)...)
		case name == "":
			panic(t.String() + "." + field.Name + " has no name in JSON")
		default:
			properties[name] = w.of(field.Type)
			if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
				required = append(required, name)
			}
		}
	}
	return schema{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

func deref(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}
