package conveyor

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of a job, as clients encode it with protobuf.
const (
	fieldUUID        protowire.Number = 1
	fieldType        protowire.Number = 2
	fieldQueue       protowire.Number = 3
	fieldPayload     protowire.Number = 4
	fieldRunAt       protowire.Number = 5
	fieldRetry       protowire.Number = 9
	fieldMaxRetries  protowire.Number = 10
	fieldLastFailure protowire.Number = 11

	fieldSeconds protowire.Number = 1 // field of a timestamp
	fieldNanos   protowire.Number = 2
)

// errEnvelope means that a job cannot be parsed.
var errEnvelope = errors.New("the value is not a job of Conveyor")

// envelope is a job in the format of clients. The payload is the input of the worker's function. All other bytes are
// returned to clients unchanged.
//
//	raw:  before │ header │ payload │ after
//
// header is the tag and the length of the payload; it is empty if there is no payload.
type envelope struct {
	before, header, payload, after []byte

	uuid, typ, queue  string
	lastFailure       string
	runAt             time.Time // zero: none
	retry, maxRetries int64
}

// parseEnvelope reads a job. The result refers to raw.
func parseEnvelope(raw []byte) (e envelope, err error) {
	e.before = raw
	for rest := raw; len(rest) > 0; {
		number, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return e, errEnvelope
		}
		size := protowire.ConsumeFieldValue(number, kind, rest[n:])
		if size < 0 {
			return e, errEnvelope
		}
		if err := e.set(number, kind, rest[n:n+size]); err != nil {
			return e, err
		}
		if number == fieldPayload && kind == protowire.BytesType {
			at := len(raw) - len(rest)
			e.before, e.header = raw[:at], raw[at:at+n+size-len(e.payload)]
			e.after = raw[at+n+size:]
		}
		rest = rest[n+size:]
	}
	return e, nil
}

// set stores a known field. Unknown fields stay in the bytes.
func (e *envelope) set(number protowire.Number, kind protowire.Type, value []byte) error {
	switch kind { //nolint:exhaustive // the kinds of the fields that are read
	case protowire.BytesType:
		b, _ := protowire.ConsumeBytes(value)
		return e.setBytes(number, b)
	case protowire.VarintType:
		n, _ := protowire.ConsumeVarint(value)
		switch number { //nolint:exhaustive // the fields that are read
		case fieldRetry:
			e.retry = int64(int32(n))
		case fieldMaxRetries:
			e.maxRetries = int64(int32(n))
		}
	}
	return nil
}

func (e *envelope) setBytes(number protowire.Number, b []byte) (err error) {
	switch number { //nolint:exhaustive // the fields that are read
	case fieldUUID:
		e.uuid = string(b)
	case fieldType:
		e.typ = string(b)
	case fieldQueue:
		e.queue = string(b)
	case fieldPayload:
		e.payload = b
	case fieldLastFailure:
		e.lastFailure = string(b)
	case fieldRunAt:
		e.runAt, err = parseTimestamp(b)
	}
	return err
}

// parseTimestamp reads a google.protobuf.Timestamp. Times before 1970, such as Go's zero time, are no time: the job is
// due in any case.
func parseTimestamp(b []byte) (time.Time, error) {
	var seconds, nanos int64
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return time.Time{}, errEnvelope
		}
		size := protowire.ConsumeFieldValue(number, kind, b[n:])
		if size < 0 {
			return time.Time{}, errEnvelope
		}
		if kind == protowire.VarintType {
			v, _ := protowire.ConsumeVarint(b[n:])
			switch number { //nolint:exhaustive // the fields that are read
			case fieldSeconds:
				seconds = int64(v)
			case fieldNanos:
				nanos = int64(int32(v))
			}
		}
		b = b[n+size:]
	}
	const earliest, latest = -62135596800, 253402300799 // protobuf's limits: the years 1 to 9999
	if seconds < earliest || seconds > latest || nanos < 0 || nanos >= int64(time.Second) {
		return time.Time{}, errEnvelope
	}
	if seconds < 0 {
		return time.Time{}, nil
	}
	return time.Unix(seconds, nanos), nil
}

// A job's attributes store the bytes of its envelope around the payload. On disk:
//
//	version 1 │ length, before │ length, header │ length of the payload │ after
const attributesVersion = 1

// attributes encodes the parts of an envelope that the core stores besides the payload.
func (e *envelope) attributes() []byte {
	b := make([]byte, 0, 8+len(e.before)+len(e.header)+len(e.after))
	b = append(b, attributesVersion)
	b = append(binary.AppendUvarint(b, uint64(len(e.before))), e.before...)
	b = append(binary.AppendUvarint(b, uint64(len(e.header))), e.header...)
	b = binary.AppendUvarint(b, uint64(len(e.payload)))
	return append(b, e.after...)
}

// encodeRaw encodes a job from attributes and a payload. With the original payload the result equals the bytes that the
// client sent. ok is false if the attributes do not come from the function attributes.
func encodeRaw(attributes, payload []byte) (raw []byte, ok bool) {
	if len(attributes) == 0 || attributes[0] != attributesVersion {
		return nil, false
	}
	before, rest, ok := cutPart(attributes[1:])
	if !ok {
		return nil, false
	}
	header, rest, ok := cutPart(rest)
	if !ok {
		return nil, false
	}
	size, n := binary.Uvarint(rest)
	if n <= 0 {
		return nil, false
	}
	if size != uint64(len(payload)) { // the body was changed
		header = protowire.AppendTag(nil, fieldPayload, protowire.BytesType)
		header = protowire.AppendVarint(header, uint64(len(payload)))
	}
	return slices.Concat(before, header, payload, rest[n:]), true
}

// cutPart reads a length and the bytes after it.
func cutPart(b []byte) (part, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	b = b[n:]
	return b[:size], b[size:], true
}

// encodeEnvelope encodes a job of another protocol.
func encodeEnvelope(uuid, typ, queue string, payload []byte) []byte {
	var b []byte
	for _, f := range []struct {
		number protowire.Number
		value  string
	}{{fieldUUID, uuid}, {fieldType, typ}, {fieldQueue, queue}} {
		b = protowire.AppendString(protowire.AppendTag(b, f.number, protowire.BytesType), f.value)
	}
	return protowire.AppendBytes(protowire.AppendTag(b, fieldPayload, protowire.BytesType), payload)
}

// withRetry sets the number of failures of an encoded job.
func withRetry(raw []byte, retry uint32) []byte {
	var field []byte
	if retry > 0 {
		field = protowire.AppendVarint(protowire.AppendTag(nil, fieldRetry, protowire.VarintType), uint64(retry))
	}
	return withField(raw, fieldRetry, field)
}

// withUUID sets the uuid of an encoded job.
func withUUID(raw []byte, uuid string) []byte {
	return withField(raw, fieldUUID,
		protowire.AppendString(protowire.AppendTag(nil, fieldUUID, protowire.BytesType), uuid))
}

// withField sets a field of an encoded job in the same way as Conveyor's client: fields are in the order of their
// numbers, and zero is not written.
func withField(raw []byte, field protowire.Number, encoded []byte) []byte {
	at := 0
	for at < len(raw) {
		number, _, n := protowire.ConsumeField(raw[at:])
		switch {
		case n < 0:
			return raw
		case number == field:
			return slices.Concat(raw[:at], encoded, raw[at+n:])
		case number > field:
			return slices.Concat(raw[:at], encoded, raw[at:])
		}
		at += n
	}
	return append(raw, encoded...)
}
