package sqs

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// A Query client that accepts JSON gets the elements of the XML reply as members:
//
//	{"SendMessageResponse":{"SendMessageResult":{…},"ResponseMetadata":{"RequestId":"…"}}}
//
// It differs from AWS JSON in these points: members without a value are null, and maps are lists of names and values.

// queryJSONNames are members that have another name than in AWS JSON.
var queryJSONNames = map[string]string{"Messages": "messages", "QueueUrls": "queueUrls"}

// encodeQueryJSON is encodeResult for a Query client that accepts JSON.
func (w *wireRequest) encodeQueryJSON(result any, requestID string) ([]byte, string, error) {
	reply := map[string]any{"ResponseMetadata": map[string]string{"RequestId": requestID}}
	if result != nil {
		reply[w.action+"Result"] = queryJSONObject(reflect.ValueOf(result).Elem())
	}
	body, err := json.Marshal(map[string]any{w.action + "Response": reply})
	return body, queryJSONType, err
}

// queryJSONObject converts a struct to its members.
func queryJSONObject(from reflect.Value) map[string]any {
	members := make(map[string]any)
	t := from.Type()
	for i := range t.NumField() {
		if t.Field(i).Anonymous {
			for name, value := range queryJSONObject(from.Field(i)) {
				members[name] = value
			}
			continue
		}
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "" {
			name = t.Field(i).Name
		}
		if other, has := queryJSONNames[name]; has {
			name = other
		}
		members[name] = queryJSONValue(from.Field(i), queryNames(t.Field(i)))
	}
	return members
}

// queryJSONValue converts a value. names are those of its field in a form.
func queryJSONValue(v reflect.Value, names []string) any {
	switch {
	case v.Kind() == reflect.Bool:
		return v.Bool()
	case v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0:
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer: // a member that is written even if it is zero
		return v.Elem().Interface()
	case reflect.Struct:
		return queryJSONObject(v)
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Struct {
			return v.Interface() // bytes become base64
		}
		list := make([]any, v.Len())
		for i := range list {
			list[i] = queryJSONObject(v.Index(i))
		}
		return list
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
		list := make([]any, len(keys))
		for i, key := range keys {
			list[i] = map[string]any{names[1]: key.String(), names[2]: queryJSONValue(v.MapIndex(key), names)}
		}
		return list
	}
	return v.Interface()
}
