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

// options reads arguments as pairs of name and value. The last value of a name wins. A name without a value is ignored.
func (a args) options() map[string]string {
	o := make(map[string]string, len(a)/2)
	for i := 0; i+1 < len(a); i += 2 {
		o[a[i]] = a[i+1]
	}
	return o
}

// input reads the arguments of a command. The first error is the reply, so that a command checks err once, after it has
// read all arguments. What is read after an error has no meaning.
type input struct {
	args
	err error
}

// refuse sets the error if it is the first.
func (in *input) refuse(err error) {
	if in.err == nil {
		in.err = err
	}
}

// need returns a required argument. If it is missing, the error is text.
func (in *input) need(i int, text string) string {
	s, given := in.get(i)
	if !given {
		in.refuse(fault("%s", text))
	}
	return s
}

func (in *input) queue(i int) string { return in.need(i, "Queue(): no queue name provided") }
func (in *input) jid(i int) string   { return in.need(i, "Job(): no jid provided") }

// number returns a required number. The error is text and the given argument.
func (in *input) number(i int, text string) float64 {
	s, given := in.get(i)
	if !given {
		in.refuse(fault("%snil", text))
		return 0
	}
	return in.parseNumber(s, text)
}

// numberOr returns an optional number.
func (in *input) numberOr(i int, otherwise float64, text string) float64 {
	if i >= len(in.args) {
		return otherwise
	}
	return in.number(i, text)
}

// optionalNumber returns the number of an option.
func (in *input) optionalNumber(o map[string]string, name string, otherwise float64, text string) float64 {
	s, given := o[name]
	if !given {
		return otherwise
	}
	return in.parseNumber(s, text)
}

func (in *input) parseNumber(s, text string) float64 {
	f, ok := parseNumber(s)
	if !ok {
		in.refuse(fault("%s%s", text, s))
	}
	return f
}

// finite refuses numbers that are infinite or NaN.
func (in *input) finite(all ...float64) { in.refuse(finite(all...)) }

// page returns an offset and a count, for Redis commands that need integers.
func (in *input) page(offset, count float64) (first, n int) {
	first, ok := wholeNumber(offset)
	n, too := wholeNumber(count)
	if !ok || !too {
		in.refuse(errInteger)
	}
	return first, n
}

// json returns an argument that must be JSON and not false, and its value; missing is the error for false.
func (in *input) json(i int, missing string) (text string, value any) {
	text, given := in.get(i)
	if !given {
		in.refuse(fault("bad argument #1 to 'decode' (string expected, got nil)"))
		return "", nil
	}
	return text, in.decode(text, missing)
}

func (in *input) decode(s, missing string) any {
	v, err := decode(s)
	switch {
	case err != nil:
		in.refuse(fault("%s", err))
	case v == false:
		in.refuse(fault("%s%s", missing, s))
	}
	return v
}

// optionalJSON returns the value of a JSON argument; nil if it is missing or false.
func (in *input) optionalJSON(i int) any {
	s, given := in.get(i)
	if !given {
		return nil
	}
	v, err := decode(s)
	if err != nil {
		in.refuse(fault("%s", err))
	}
	if v == false {
		return nil
	}
	return v
}

// optionalList reads an option that is a JSON list of strings. It converts numbers in the list to text.
func (in *input) optionalList(o map[string]string, name string, otherwise []string, missing string) []string {
	s, given := o[name]
	if !given {
		return otherwise
	}
	v := in.decode(s, missing)
	if in.err != nil {
		return nil
	}
	return in.listOfTexts(v)
}

// listOfTexts returns the items of a JSON list as strings.
func (in *input) listOfTexts(v any) []string {
	t, ok := v.(*table)
	if !ok {
		in.refuse(fault("bad argument #1 to 'ipairs' (table expected, got %s)", luaType(v)))
		return nil
	}
	list := make([]string, 0, len(t.array))
	for _, item := range t.array {
		switch item := item.(type) {
		case string:
			list = append(list, item)
		case float64:
			list = append(list, formatNumber(item))
		default:
			in.refuse(fault("bad argument (string expected, got %s)", luaType(item)))
		}
	}
	return list
}

// pairs returns the arguments from index i on as options. There must be a value for each name.
func (in *input) pairs(i int) map[string]string {
	a := in.from(i)
	if len(a)%2 == 1 {
		in.refuse(fault("Odd number of additional args: %s", fmt.Sprintf("table: %p", &a)))
	}
	return a.options()
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
