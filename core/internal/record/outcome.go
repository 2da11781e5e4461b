package record

import (
	"encoding/binary"

	"broker/core"
)

// fieldExternal, the first bit of a failure and of an outcome, says that the record is stored in the body space. It is
// then the only field. On disk.
const fieldExternal = 1

// Fields of a failure. On disk.
const (
	failureType = fieldExternal << (1 + iota)
	failureMessage
	failureBacktrace
	failureFailedAt
	failureNextAt
	failureCount
	failureException
	failureData
	failureGroup

	failureKnown = fieldExternal<<(1+iota) - 1
)

// Fields of an outcome. On disk.
const (
	outcomeSuccess = fieldExternal << (1 + iota)
	outcomeCause
	outcomeFailure
	outcomeResult // the rest of the record

	outcomeKnown = fieldExternal<<(1+iota) - 1
)

// External is stored in the job space in place of a record that is too large for it.
var External = []byte{Version, fieldExternal}

// AppendFailure encodes e.
func AppendFailure(dst []byte, e *core.Failure) []byte {
	f := flag(e.Type != "", failureType) | flag(e.Message != "", failureMessage) |
		flag(len(e.Backtrace) > 0, failureBacktrace) | flag(e.FailedAt != 0, failureFailedAt) |
		flag(e.NextAt != 0, failureNextAt) | flag(e.Count != 0, failureCount) |
		flag(e.Exception, failureException) | flag(len(e.Data) > 0, failureData) |
		flag(e.Group != "", failureGroup)
	dst = append(dst, Version)
	dst = binary.AppendUvarint(dst, f)
	if f&failureType != 0 {
		dst = appendText(dst, e.Type)
	}
	if f&failureMessage != 0 {
		dst = appendText(dst, e.Message)
	}
	if f&failureBacktrace != 0 {
		dst = appendTexts(dst, e.Backtrace)
	}
	if f&failureFailedAt != 0 {
		dst = binary.AppendVarint(dst, int64(e.FailedAt))
	}
	if f&failureNextAt != 0 {
		dst = binary.AppendVarint(dst, int64(e.NextAt-e.FailedAt))
	}
	if f&failureCount != 0 {
		dst = binary.AppendUvarint(dst, uint64(e.Count))
	}
	if f&failureData != 0 {
		dst = appendBytes(dst, e.Data)
	}
	if f&failureGroup != 0 {
		dst = appendText(dst, e.Group)
	}
	return dst
}

// DecodeFailure fills e from a record, with views of b. External: the record is in the body space.
func DecodeFailure(b []byte, e *core.Failure) (external bool, err error) {
	d := decoder{b: b}
	*e = core.Failure{}
	f := d.open(failureKnown)
	if f == fieldExternal {
		return true, d.close()
	}
	if f&fieldExternal != 0 {
		d.fail(ErrFields)
	}
	if f&failureType != 0 {
		e.Type = d.text()
	}
	if f&failureMessage != 0 {
		e.Message = d.text()
	}
	if f&failureBacktrace != 0 {
		e.Backtrace = d.texts()
	}
	if f&failureFailedAt != 0 {
		e.FailedAt = core.Instant(d.varint())
	}
	if f&failureNextAt != 0 {
		e.NextAt = e.FailedAt + core.Instant(d.varint())
	}
	if f&failureCount != 0 {
		e.Count = d.uint32()
	}
	e.Exception = f&failureException != 0
	if f&failureData != 0 {
		e.Data = d.bytes()
	}
	if f&failureGroup != 0 {
		e.Group = d.text()
	}
	return false, d.close()
}

// AppendOutcome encodes o.
func AppendOutcome(dst []byte, o *core.Outcome) []byte {
	f := flag(o.Success, outcomeSuccess) | flag(o.Cause != 0, outcomeCause) |
		flag(o.Failure != nil, outcomeFailure) | flag(len(o.Result) > 0, outcomeResult)
	dst = append(dst, Version)
	dst = binary.AppendUvarint(dst, f)
	if f&outcomeCause != 0 {
		dst = binary.AppendUvarint(dst, uint64(o.Cause))
	}
	if f&outcomeFailure != 0 {
		dst = appendBytes(dst, AppendFailure(nil, o.Failure))
	}
	return append(dst, o.Result...)
}

// DecodeOutcome fills o from a record, with views of b. External: the record is in the body space.
func DecodeOutcome(b []byte, o *core.Outcome) (external bool, err error) {
	d := decoder{b: b}
	*o = core.Outcome{}
	f := d.open(outcomeKnown)
	if f == fieldExternal {
		return true, d.close()
	}
	if f&fieldExternal != 0 {
		d.fail(ErrFields)
	}
	o.Success = f&outcomeSuccess != 0
	if f&outcomeCause != 0 {
		o.Cause = core.Cause(d.byte())
	}
	if f&outcomeFailure != 0 {
		o.Failure = d.failure()
	}
	if f&outcomeResult != 0 {
		o.Result = d.take(uint64(len(d.b)))
	}
	return false, d.close()
}

// failure reads a failure within another record.
func (d *decoder) failure() *core.Failure {
	f := new(core.Failure)
	external, err := DecodeFailure(d.bytes(), f)
	switch {
	case err != nil:
		d.fail(err)
	case external:
		d.fail(ErrFields)
	}
	return f
}
