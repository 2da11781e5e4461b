// Command collector decodes spans as an OpenTelemetry collector does, with the collector's own library. It reads a
// request of OTLP over HTTP in JSON and prints its spans, one JSON object a line. It is a module of its own, because
// the broker does not need the library.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// decoded is a span as it is printed.
type decoded struct {
	Service, Name, Kind, Trace, Span, Parent, State, Status, Message string
	Start, End                                                       int64
	Flags                                                            uint32
	Attributes                                                       map[string]any
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "collector:", err)
		os.Exit(1)
	}
}

func run(r io.Reader, w io.Writer) error {
	body, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	traces, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces(body)
	if err != nil {
		return err
	}
	out := json.NewEncoder(w)
	for _, of := range traces.ResourceSpans().All() {
		service, _ := of.Resource().Attributes().Get("service.name")
		for _, scope := range of.ScopeSpans().All() {
			for _, s := range scope.Spans().All() {
				if err := out.Encode(decode(service.Str(), s)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func decode(service string, s ptrace.Span) decoded {
	return decoded{
		Service: service, Name: s.Name(), Kind: s.Kind().String(), Trace: s.TraceID().String(),
		Span:   s.SpanID().String(),
		Parent: s.ParentSpanID().String(), State: s.TraceState().AsRaw(), Status: s.Status().Code().String(),
		Message: s.Status().Message(),
		Flags:   s.Flags(), Start: s.StartTimestamp().AsTime().UnixNano(), End: s.EndTimestamp().AsTime().UnixNano(),
		Attributes: s.Attributes().AsRaw(),
	}
}
