package sqs

import (
	"encoding/base64"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A Query form is a tree: A.1.Name=x is the value of Name in element 1 of A. The fields of a request have a tag
// query:"…" with the name of a list or map in a form, and for maps the names of keys and values.

// maxFormDepth is deeper than any parameter.
const maxFormDepth = 8

type node struct {
	value    string
	set      bool
	children map[string]*node
}

func treeOf(form url.Values) *node {
	root := &node{}
	for name, values := range form {
		parts := strings.SplitN(name, ".", maxFormDepth+1)
		if len(parts) > maxFormDepth || len(values) == 0 {
			continue
		}
		at := root
		for _, part := range parts {
			child := at.children[part]
			if child == nil {
				if at.children == nil {
					at.children = make(map[string]*node)
				}
				child = &node{}
				at.children[part] = child
			}
			at = child
		}
		at.value, at.set = values[0], true
	}
	return root
}

// elements are the members of a list, in the order of their numbers.
func (n *node) elements() []*node {
	type numbered struct {
		number int
		*node
	}
	var all []numbered
	for name, child := range n.children {
		if number, err := strconv.Atoi(name); err == nil && number > 0 {
			all = append(all, numbered{number, child})
		}
	}
	slices.SortFunc(all, func(a, b numbered) int { return a.number - b.number })
	nodes := make([]*node, len(all))
	for i, e := range all {
		nodes[i] = e.node
	}
	return nodes
}

// text is the value of a member; empty: none.
func (n *node) text(name string) string {
	if child := n.children[name]; child != nil {
		return child.value
	}
	return ""
}

// decodeForm reads a form into a struct.
func decodeForm(n *node, into any) error { return decodeStruct(n, reflect.ValueOf(into).Elem()) }

func decodeStruct(n *node, to reflect.Value) error {
	t := to.Type()
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Anonymous {
			if err := decodeStruct(n, to.Field(i)); err != nil {
				return err
			}
			continue
		}
		names := queryNames(field)
		child := n.children[names[0]]
		if child == nil {
			continue
		}
		if err := decodeValue(child, to.Field(i), names); err != nil {
			return err
		}
	}
	return nil
}

// queryNames are the names of a field in a form: its own, and those of the keys and values of a map.
func queryNames(f reflect.StructField) []string {
	names := strings.Split(f.Tag.Get("query"), ",")
	if names[0] == "" {
		names[0] = f.Name
	}
	if len(names) == 1 {
		names = append(names, "Name", "Value")
	}
	return names
}

func decodeValue(n *node, to reflect.Value, names []string) error {
	switch to.Kind() {
	case reflect.Pointer:
		fresh := reflect.New(to.Type().Elem())
		if err := decodeValue(n, fresh.Elem(), names); err != nil {
			return err
		}
		if n.set || n.children != nil {
			to.Set(fresh)
		}
	case reflect.String:
		to.SetString(n.value)
	case reflect.Int:
		number, err := strconv.Atoi(n.value)
		if err != nil {
			return badValue(n.value, names[0], "Must be an integer.")
		}
		to.SetInt(int64(number))
	case reflect.Slice:
		return decodeSlice(n, to, names)
	case reflect.Map:
		return decodeMap(n, to, names)
	case reflect.Struct:
		return decodeStruct(n, to)
	default:
		panic("sqs: a request has a field of kind " + to.Kind().String())
	}
	return nil
}

func decodeSlice(n *node, to reflect.Value, names []string) error {
	if to.Type().Elem().Kind() == reflect.Uint8 {
		raw, err := base64.StdEncoding.DecodeString(n.value)
		if err != nil {
			return badValue(n.value, names[0], "Must be base64.")
		}
		to.SetBytes(raw)
		return nil
	}
	elements := n.elements()
	to.Set(reflect.MakeSlice(to.Type(), len(elements), len(elements)))
	for i, e := range elements {
		if err := decodeValue(e, to.Index(i), names); err != nil {
			return err
		}
	}
	return nil
}

func decodeMap(n *node, to reflect.Value, names []string) error {
	to.Set(reflect.MakeMap(to.Type()))
	for _, e := range n.elements() {
		value := reflect.New(to.Type().Elem()).Elem()
		if child := e.children[names[2]]; child != nil {
			if err := decodeValue(child, value, names); err != nil {
				return err
			}
		}
		to.SetMapIndex(reflect.ValueOf(e.text(names[1])), value)
	}
	return nil
}
