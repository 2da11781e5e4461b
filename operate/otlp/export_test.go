package otlp

// The types of requests, for tests.
type (
	TracesData = tracesData
	Span       = span
)

// Values of its fields.
const (
	InternalSpan = internalSpan
	ProducerSpan = producerSpan
	ConsumerSpan = consumerSpan
	StatusError  = statusError
)
