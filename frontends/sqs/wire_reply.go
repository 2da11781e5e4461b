package sqs

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

const xmlSpace = "http://queue.amazonaws.com/doc/2012-11-05/"

// typePrefix is the name space of the types of errors in AWS JSON.
const typePrefix = "com.amazonaws.sqs#"

// encodeResult is the body of a reply. A nil result is an action without one.
func (w *wireRequest) encodeResult(result any, requestID string) ([]byte, string, error) {
	var b bytes.Buffer
	if w.isJSON {
		if result == nil {
			return []byte("{}"), jsonType, nil
		}
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		err := e.Encode(result)
		return bytes.TrimRight(b.Bytes(), "\n"), jsonType, err
	}
	if w.queryJSON {
		return w.encodeQueryJSON(result, requestID)
	}
	b.WriteString(`<?xml version="1.0"?><` + w.action + `Response xmlns="` + xmlSpace + `">`)
	if result != nil {
		var inner bytes.Buffer
		if encodeXML(&inner, reflect.ValueOf(result).Elem()); inner.Len() > 0 {
			b.WriteString("<" + w.action + "Result>" + inner.String() + "</" + w.action + "Result>")
		} else {
			b.WriteString("<" + w.action + "Result/>")
		}
	}
	b.WriteString("<ResponseMetadata><RequestId>" + requestID + "</RequestId></ResponseMetadata></" + w.action +
		"Response>")
	return b.Bytes(), "text/xml", nil
}

// encodeError is the body of an error reply.
func (w *wireRequest) encodeError(e *apiError, requestID string) ([]byte, string, int) {
	status := e.kind.status
	if w.isJSON {
		body, err := json.Marshal(map[string]string{"__type": typePrefix + e.kind.name, "message": e.text})
		if err != nil {
			panic(err) // texts only
		}
		return body, jsonType, status
	}
	if w.action == "" && e.kind == unknownOperation {
		return []byte("<UnknownOperationException/>"), "text/xml", http.StatusNotFound
	}
	text := e.text
	if e.kind == queueDoesNotExist {
		text = "The specified queue does not exist for this wsdl version."
	}
	if w.queryJSON {
		body, err := json.Marshal(map[string]any{
			"Error":     map[string]string{"Type": e.fault(), "Code": e.kind.code, "Message": text},
			"RequestId": requestID,
		})
		if err != nil {
			panic(err) // texts only
		}
		return body, queryJSONType, status
	}
	var b bytes.Buffer
	b.WriteString(`<?xml version="1.0"?><ErrorResponse xmlns="` + xmlSpace + `"><Error><Type>` + e.fault() +
		"</Type><Code>" + e.kind.code + "</Code><Message>")
	escape(&b, text)
	b.WriteString("</Message></Error><RequestId>" + requestID + "</RequestId></ErrorResponse>")
	return b.Bytes(), "text/xml", status
}

// fault returns whose fault an error is.
func (e *apiError) fault() string {
	if e.sender() {
		return "Sender"
	}
	return "Receiver"
}

// encodeXML writes the fields of a struct. It leaves out empty fields, except booleans.
func encodeXML(b *bytes.Buffer, from reflect.Value) {
	t := from.Type()
	for i := range t.NumField() {
		if t.Field(i).Anonymous {
			encodeXML(b, from.Field(i))
			continue
		}
		if v := from.Field(i); !v.IsZero() || v.Kind() == reflect.Bool {
			encodeField(b, v, queryNames(t.Field(i)))
		}
	}
}

func encodeField(b *bytes.Buffer, v reflect.Value, names []string) {
	if v.Kind() == reflect.Pointer { // a field that is written even if it is zero
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			break
		}
		for i := range v.Len() {
			encodeField(b, v.Index(i), names)
		}
		return
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
		for _, key := range keys {
			b.WriteString("<" + names[0] + "><" + names[1] + ">")
			escape(b, key.String())
			b.WriteString("</" + names[1] + ">")
			encodeField(b, v.MapIndex(key), []string{names[2], "", ""})
			b.WriteString("</" + names[0] + ">")
		}
		return
	}
	b.WriteString("<" + names[0] + ">")
	switch v.Kind() {
	case reflect.String:
		escape(b, v.String())
	case reflect.Int, reflect.Int64:
		b.WriteString(strconv.FormatInt(v.Int(), 10))
	case reflect.Bool:
		b.WriteString(strconv.FormatBool(v.Bool()))
	case reflect.Slice:
		b.WriteString(base64.StdEncoding.EncodeToString(v.Bytes()))
	case reflect.Struct:
		encodeXML(b, v)
	default:
		panic("sqs: a result has a field of kind " + v.Kind().String())
	}
	b.WriteString("</" + names[0] + ">")
}

// escape writes text. It writes carriage returns and line feeds as references, so that parsers do not normalize them.
func escape(b *bytes.Buffer, text string) { _ = xml.EscapeText(b, []byte(text)) } // a buffer takes everything
