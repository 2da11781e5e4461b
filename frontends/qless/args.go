package qless

import "fmt"

// args are the arguments of a command after its now.
type args []string

// get returns an argument, and whether the client gave it.
func (a args) get(i int) (string, bool) {
	if i < len(a) {
		return a[i], true
	}
	return "", false
}

// text returns an argument; empty if it is missing.
func (a args) text(i int) string {
	s, _ := a.get(i)
	return s
}

// from returns the arguments from index i on.
func (a args) from(i int) args {
	if i < len(a) {
		return a[i:]
	}
	return nil
}

// show returns an argument for an error message.
func (a args) show(i int) string {
	if s, ok := a.get(i); ok {
		return s
	}
	return "nil"
}

// need returns a required argument. If it is missing, the error is text.
func (a args) need(i int, text string) (string, error) {
	if s, ok := a.get(i); ok {
		return s, nil
	}
	return "", fault("%s", text)
}

// number returns a required number. The error is text and the given argument.
func (a args) number(i int, text string) (float64, error) {
	if s, ok := a.get(i); ok {
		if f, ok := parseNumber(s); ok {
			return f, nil
		}
	}
	return 0, fault("%s%s", text, a.show(i))
}

// finite returns a required number that is neither infinite nor NaN.
func (a args) finite(i int, text string) (float64, error) {
	f, err := a.number(i, text)
	if err == nil {
		err = finite(f)
	}
	return f, err
}

// numberOr returns an optional number.
func (a args) numberOr(i int, otherwise float64, text string) (float64, error) {
	if i >= len(a) {
		return otherwise, nil
	}
	return a.number(i, text)
}

// page returns an offset and a count, for Redis commands that need integers.
func page(offset, count float64) (first, n int, err error) {
	first, ok := wholeNumber(offset)
	n, too := wholeNumber(count)
	if !ok || !too {
		return 0, 0, errInteger
	}
	return first, n, nil
}

// options reads arguments as pairs of name and value. The last value of a name wins. A name without a value is ignored.
func (a args) options() map[string]string {
	o := make(map[string]string, len(a)/2)
	for i := 0; i+1 < len(a); i += 2 {
		o[a[i]] = a[i+1]
	}
	return o
}

// optionalNumber returns the number of an option. The error is text and the given value.
func optionalNumber(o map[string]string, name string, otherwise float64, text string) (float64, error) {
	s, given := o[name]
	if !given {
		return otherwise, nil
	}
	f, ok := parseNumber(s)
	if !ok {
		return 0, fault("%s%s", text, s)
	}
	return f, nil
}

// decodeArg reads an argument that must be JSON and not false; missing is the error for false.
func (a args) decodeArg(i int, missing string) (any, error) {
	s, ok := a.get(i)
	if !ok {
		return nil, fault("bad argument #1 to 'decode' (string expected, got nil)")
	}
	return decodeText(s, missing)
}

func decodeText(s, missing string) (any, error) {
	v, err := decode(s)
	if err != nil {
		return nil, fault("%s", err)
	}
	if v == false {
		return nil, fault("%s%s", missing, s)
	}
	return v, nil
}

// optionalList reads an option that is a JSON list of strings. It converts numbers in the list to text.
func optionalList(o map[string]string, name string, otherwise []string, missing string) ([]string, error) {
	s, given := o[name]
	if !given {
		return otherwise, nil
	}
	v, err := decodeText(s, missing)
	if err != nil {
		return nil, err
	}
	return listOfTexts(v)
}

// listOfTexts returns the items of a JSON list as strings.
func listOfTexts(v any) ([]string, error) {
	t, ok := v.(*table)
	if !ok {
		return nil, fault("bad argument #1 to 'ipairs' (table expected, got %s)", luaType(v))
	}
	list := make([]string, 0, len(t.array))
	for _, item := range t.array {
		switch item := item.(type) {
		case string:
			list = append(list, item)
		case float64:
			list = append(list, formatNumber(item))
		default:
			return nil, fault("bad argument (string expected, got %s)", luaType(item))
		}
	}
	return list, nil
}

// luaType is Lua's name for the type of a value.
func luaType(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case float64:
		return "number"
	case bool:
		return "boolean"
	case *table:
		return "table"
	case null:
		return "userdata"
	}
	return "nil"
}

// oddArgs is the error for a name without a value.
func oddArgs(a args) error {
	return fault("Odd number of additional args: %s", fmt.Sprintf("table: %p", &a))
}
