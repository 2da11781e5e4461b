// Package conveyor encodes and decodes jobs of Conveyor, which are protobuf messages.
package conveyor

import (
	"cmp"
	"os"

	"google.golang.org/protobuf/encoding/protowire"
)

// Address is that of the broker's port for Conveyor.
func Address() string { return cmp.Or(os.Getenv("CONVEYOR_SERVER"), "127.0.0.1:6379") }

// Queue is the queue of the jobs, and their type.
const Queue = "greet"

// Encode makes a job.
func Encode(id, payload string) []byte {
	var b []byte
	for i, field := range []string{id, Queue, Queue, payload} { // uuid, type, queue, payload
		b = protowire.AppendTag(b, protowire.Number(i+1), protowire.BytesType)
		b = protowire.AppendString(b, field)
	}
	return b
}

// Decode finds the uuid and the payload of a job.
func Decode(job []byte) (id, payload string) {
	for len(job) > 0 {
		number, kind, n := protowire.ConsumeTag(job)
		if n < 0 {
			return id, payload
		}
		size := protowire.ConsumeFieldValue(number, kind, job[n:])
		if size < 0 {
			return id, payload
		}
		value, _ := protowire.ConsumeBytes(job[n:])
		if number == 1 {
			id = string(value)
		}
		if number == 4 {
			payload = string(value)
		}
		job = job[n+size:]
	}
	return id, payload
}
