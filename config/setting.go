package config

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Setting is one leaf of Config. The file, the environment and flags can set it.
type Setting struct {
	Path string // with dots, as in the file
	Doc  string

	value reflect.Value
	unit  string
}

// Settings lists the leaves of c in the order of their declaration. Lists and tables are not included.
func Settings(c *Config) []Setting { return leaves("", reflect.ValueOf(c).Elem()) }

func leaves(prefix string, v reflect.Value) []Setting {
	var all []Setting
	for i := range v.NumField() {
		field, value := v.Type().Field(i), v.Field(i)
		path := prefix + field.Tag.Get("toml")
		switch {
		case field.Anonymous:
			all = append(all, leaves(prefix, value)...)
		case value.Addr().Type().Implements(parserType):
			all = append(all, Setting{Path: path, Doc: field.Tag.Get("doc"), value: value})
		case value.Kind() == reflect.Struct:
			all = append(all, leaves(path+".", value)...)
		case value.Kind() == reflect.Slice && value.Type() != listType, value.Kind() == reflect.Map:
		default:
			all = append(all, Setting{
				Path: path, Doc: field.Tag.Get("doc"), value: value, unit: field.Tag.Get("unit"),
			})
		}
	}
	return all
}

// Env is the environment variable of the setting.
func (s Setting) Env() string { return envName(s.Path) }

func envName(path string) string {
	return "BROKER_" + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// String is the value as it is written in the environment.
func (s Setting) String() string {
	if list, ok := s.value.Interface().([]string); ok {
		return strings.Join(list, ",")
	}
	return fmt.Sprint(s.value.Interface())
}

// parser is a type of settings with a syntax of its own. It stays as it is after an error.
type parser interface{ parse(v any) error }

// Types that are not read by their kind.
var (
	parserType   = reflect.TypeFor[parser]()
	durationType = reflect.TypeFor[time.Duration]()
	listType     = reflect.TypeFor[[]string]()
)

// set sets a value decoded from TOML; from the environment and flags it is always a string.
func (s Setting) set(to any) error {
	if p, ok := s.value.Addr().Interface().(parser); ok {
		return p.parse(to)
	}
	switch {
	case s.value.Type() == listType:
		list, err := parseList(to)
		s.value.Set(reflect.ValueOf(list))
		return err
	case s.value.Type() == durationType:
		d, err := s.parseDuration(to)
		s.value.SetInt(int64(d))
		return err
	case s.value.Kind() == reflect.Bool:
		b, err := parseBool(to)
		s.value.SetBool(b)
		return err
	case s.value.Kind() == reflect.Float64:
		f, err := parseFloat(to)
		s.value.SetFloat(f)
		return err
	case s.value.Kind() == reflect.Int:
		n, err := parseInt(to)
		s.value.SetInt(n)
		return err
	}
	text, ok := to.(string)
	if !ok {
		return fmt.Errorf("%v is not a string", to)
	}
	s.value.SetString(text)
	return nil
}

// parseList accepts an array of strings, or one string separated by commas.
func parseList(v any) ([]string, error) {
	var list []string
	switch v := v.(type) {
	case string:
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
		return list, nil
	case []any:
		for _, part := range v {
			text, ok := part.(string)
			if !ok {
				return nil, fmt.Errorf("%v is not a string", part)
			}
			list = append(list, text)
		}
		return list, nil
	}
	return nil, fmt.Errorf("%v is not a list of strings", v)
}

func parseBool(v any) (bool, error) {
	switch v := v.(type) {
	case bool:
		return v, nil
	case string:
		if b, err := strconv.ParseBool(v); err == nil {
			return b, nil
		}
	}
	return false, fmt.Errorf("%v is not true or false", v)
}

func parseFloat(v any) (float64, error) {
	switch v := v.(type) {
	case float64:
		return v, nil
	case int64:
		return float64(v), nil
	}
	return 0, fmt.Errorf("%v is not a number", v)
}

func parseInt(v any) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%v is not a whole number", v)
}

func (s Setting) parseDuration(v any) (time.Duration, error) {
	if n, err := parseInt(v); err == nil && s.unit == "s" {
		if n < 0 || n > math.MaxInt64/int64(time.Second) {
			return 0, fmt.Errorf("%v is out of range", v)
		}
		return time.Duration(n) * time.Second, nil
	}
	if text, ok := v.(string); ok {
		if d, err := time.ParseDuration(text); err == nil {
			return d, nil
		}
	}
	return 0, fmt.Errorf("%v is not a duration such as 100ms, 5s or 30m", v)
}

// units, largest first.
var units = []struct {
	name string
	size Size
}{{"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}}

func (n Size) String() string {
	for _, u := range units {
		if n != 0 && n%u.size == 0 {
			return strconv.FormatInt(int64(n/u.size), 10) + " " + u.name
		}
	}
	return strconv.FormatInt(int64(n), 10)
}

// parse implements parser.
func (n *Size) parse(v any) error {
	if whole, err := parseInt(v); err == nil {
		*n = Size(whole)
		return nil
	}
	text, _ := v.(string)
	for _, u := range units {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		count, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err == nil && count >= 0 && count <= math.MaxInt64/int64(u.size) {
			*n = Size(count) * u.size
			return nil
		}
	}
	return fmt.Errorf("%v is not a size such as 1048576, 64 MiB or 2 GiB", v)
}
