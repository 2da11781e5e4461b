package conveyorclient

import (
	"errors"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Job is a job as Conveyor knows it. On the wire it is a protobuf message with these fields in the order of their
// numbers.
type Job struct {
	UUID        string // 1
	Type        string // 2
	Queue       string // 3
	Payload     []byte // 4
	RunAt       time.Time
	Parent      string // 6
	Predecessor string // 7
	Retry       uint64 // 9
	MaxRetries  uint64 // 10
}

const (
	fieldRunAt      = 5
	fieldRetry      = 9
	fieldMaxRetries = 10
)

// texts are the fields of text by their numbers.
func (j *Job) texts() map[protowire.Number]*string {
	return map[protowire.Number]*string{1: &j.UUID, 2: &j.Type, 3: &j.Queue, 6: &j.Parent, 7: &j.Predecessor}
}

// encode writes the message.
func (j *Job) encode() []byte {
	var b []byte
	texts := j.texts()
	for number := protowire.Number(1); number <= fieldMaxRetries; number++ {
		switch text := texts[number]; {
		case text != nil && *text != "":
			b = protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), *text)
		case number == 4 && len(j.Payload) > 0:
			b = protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), j.Payload)
		case number == fieldRunAt && !j.RunAt.IsZero():
			seconds := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(j.RunAt.Unix()))
			b = protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), seconds)
		case number == fieldRetry && j.Retry > 0:
			b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), j.Retry)
		case number == fieldMaxRetries && j.MaxRetries > 0:
			b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), j.MaxRetries)
		}
	}
	return b
}

// decode reads a message.
func decode(raw []byte) (*Job, error) {
	j := &Job{}
	texts := j.texts()
	for len(raw) > 0 {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return nil, errors.New("not a job")
		}
		raw = raw[n:]
		size := protowire.ConsumeFieldValue(number, kind, raw)
		if size < 0 {
			return nil, errors.New("not a job")
		}
		value, _ := protowire.ConsumeBytes(raw)
		count, _ := protowire.ConsumeVarint(raw)
		switch text := texts[number]; {
		case text != nil:
			*text = string(value)
		case number == 4:
			j.Payload = append([]byte(nil), value...)
		case number == fieldRetry:
			j.Retry = count
		case number == fieldMaxRetries:
			j.MaxRetries = count
		}
		raw = raw[size:]
	}
	return j, nil
}
