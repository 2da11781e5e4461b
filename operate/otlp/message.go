package otlp

// The messages of OTLP over HTTP in their JSON encoding: ids are hexadecimal, enumerations and flags are numbers, times
// are strings.

type tracesData struct {
	ResourceSpans []resourceSpans `json:"resourceSpans"`
}

type resourceSpans struct {
	Resource   resource     `json:"resource"`
	ScopeSpans []scopeSpans `json:"scopeSpans"`
}

type resource struct {
	Attributes []attribute `json:"attributes"`
}

type scopeSpans struct {
	Scope scope   `json:"scope"`
	Spans []*span `json:"spans"`
}

type scope struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type span struct {
	TraceID      string      `json:"traceId"`
	SpanID       string      `json:"spanId"`
	ParentSpanID string      `json:"parentSpanId"`
	TraceState   string      `json:"traceState,omitempty"`
	Flags        uint32      `json:"flags"`
	Name         string      `json:"name"`
	Kind         spanKind    `json:"kind"`
	Start        uint64      `json:"startTimeUnixNano,string"`
	End          uint64      `json:"endTimeUnixNano,string"`
	Attributes   []attribute `json:"attributes"`
	Status       *status     `json:"status,omitempty"`
}

type spanKind int

const (
	internalSpan spanKind = 1
	producerSpan spanKind = 4
	consumerSpan spanKind = 5
)

type status struct {
	Message string `json:"message"`
	Code    int    `json:"code"`
}

const statusError = 2

type attribute struct {
	Key   string         `json:"key"`
	Value attributeValue `json:"value"`
}

type attributeValue struct {
	String string `json:"stringValue"`
}
