package sqs

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"

	"broker/core"
)

// A receipt handle is base64 of
//
//	version 1 | number of the job, 8 bytes | start of the lease, 8 bytes | CRC-32 of the bytes before and the name of the queue, 4 bytes
//
// Clients keep handles across restarts, so the format must never change without a new version.

const (
	handleVersion = 1
	handleBytes   = 1 + 8 + 8 + 4
)

// receiptHandle identifies one lease of a message.
type receiptHandle struct {
	seq      uint64
	leasedAt core.Instant
}

func (h receiptHandle) text(queue string) string {
	b := make([]byte, 0, handleBytes)
	b = append(b, handleVersion)
	b = binary.BigEndian.AppendUint64(b, h.seq)
	b = binary.BigEndian.AppendUint64(b, uint64(h.leasedAt))
	b = binary.BigEndian.AppendUint32(b, handleSum(b, queue))
	return base64.StdEncoding.EncodeToString(b)
}

func handleSum(b []byte, queue string) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(b), crc32.IEEETable, []byte(queue))
}

// parseHandle reads a handle of a message of a queue.
func parseHandle(text, queue string) (h receiptHandle, err error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) != handleBytes || b[0] != handleVersion ||
		binary.BigEndian.Uint32(b[handleBytes-4:]) != handleSum(b[:handleBytes-4], queue) {
		return h, refuse(invalidHandle, "The input receipt handle %q is not a valid receipt handle.", shorten(text))
	}
	h = receiptHandle{seq: binary.BigEndian.Uint64(b[1:]), leasedAt: core.Instant(binary.BigEndian.Uint64(b[9:]))}
	if h.leasedAt <= 0 { // not a handle from here; a condition without a lease start would match any lease
		return h, refuse(invalidHandle, "The input receipt handle %q is not a valid receipt handle.", shorten(text))
	}
	return h, nil
}

// shorten limits the client's input in error texts.
func shorten(text string) string {
	const most = 200
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
