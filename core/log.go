package core

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// AppendLog appends lines to the log of a leased job. The log keeps the first and the last lines, at most MaxLogLines
// lines with MaxLogBytes of text. It survives retries and is removed with the job. Lines longer than MaxLogLine are
// cut. Reply: Accepted, with CancelRequested if the worker is asked to stop, or Failed with ErrNotFound, ErrConflict,
// ErrNotLeased, ErrNotHolder, ErrDiskFull, or ErrInvalid: more than MaxLogLines lines, or a job that is in memory only.
type AppendLog struct {
	changing
	Tag       uint64
	Ref       Ref
	If        Condition
	Authority FinishAuthority
	Lines     []string
}

// TagOf implements Op.
func (o *AppendLog) TagOf() uint64 { return o.Tag }

// Limits of the log of a job.
const (
	MaxLogLines = 1000
	MaxLogBytes = 64 << 10
	MaxLogLine  = LogChunkBytes
)

// A log is stored as documents, each with a chunk of its lines. The first chunks stay; a new chunk replaces the oldest
// of the others.
const (
	LogChunks     = 20
	LogFirst      = LogChunks / 2 // chunks that stay
	LogChunkLines = MaxLogLines / LogChunks
	LogChunkBytes = MaxLogBytes / LogChunks
)

// LogLine is a line of the log of a job.
type LogLine struct {
	Number  uint32 // of all lines of the job, from 1
	At      Instant
	Text    string
	Missing uint32 // not zero: the entry stands for this many lines that were not kept; Number is that of the last one
}

// LogChunk is a stored part of a log.
type LogChunk struct {
	Number uint32 // of all chunks of the job, from 0
	First  uint32 // number of its first line
	Lines  []LogLine
}

// LogPrefix is the prefix of the names of the documents with the log of a job.
func LogPrefix(seq uint64) string { return fmt.Sprintf("%s%016x/", LogsPrefix, seq) }

// LogsPrefix is the prefix of the names of all documents with logs.
const LogsPrefix = "core/log/"

// LogSlot returns the slot of a chunk: the number of the document that stores it.
func LogSlot(chunk uint32) uint32 {
	if chunk < LogFirst {
		return chunk
	}
	return LogFirst + (chunk-LogFirst)%(LogChunks-LogFirst)
}

// LogChunkName is the name of the document for a slot.
func LogChunkName(seq uint64, slot uint32) string { return LogPrefix(seq) + fmt.Sprintf("%02x", slot) }

// logChunkVersion is the first byte of a chunk. On disk.
const logChunkVersion = 1

// Encode encodes c, whose lines have consecutive numbers:
//
//	version │ number │ first │ each line: at, as the difference from the one before │ length │ text
func (c *LogChunk) Encode() []byte {
	b := []byte{logChunkVersion}
	b = binary.AppendUvarint(b, uint64(c.Number))
	b = binary.AppendUvarint(b, uint64(c.First))
	last := Instant(0)
	for i := range c.Lines {
		l := &c.Lines[i]
		b = binary.AppendVarint(b, int64(l.At-last))
		b = binary.AppendUvarint(b, uint64(len(l.Text)))
		b = append(b, l.Text...)
		last = l.At
	}
	return b
}

var errLogChunk = errors.New("malformed chunk of a log")

// decodeLogChunk is the inverse of Encode.
func decodeLogChunk(b []byte) (c LogChunk, err error) {
	if len(b) == 0 || b[0] != logChunkVersion {
		return c, errLogChunk
	}
	text := string(b[1:])
	numbers := [2]uint64{}
	for i := range numbers {
		n := 0
		if numbers[i], n = binary.Uvarint([]byte(text[:min(len(text), binary.MaxVarintLen64)])); n <= 0 ||
			numbers[i] > 1<<32-1 {
			return c, errLogChunk
		}
		text = text[n:]
	}
	c.Number, c.First = uint32(numbers[0]), uint32(numbers[1])
	at := Instant(0)
	for text != "" {
		step, n := binary.Varint([]byte(text[:min(len(text), binary.MaxVarintLen64)]))
		if n <= 0 {
			return c, errLogChunk
		}
		text = text[n:]
		size, n := binary.Uvarint([]byte(text[:min(len(text), binary.MaxVarintLen64)]))
		if n <= 0 || size > uint64(len(text)-n) || len(c.Lines) == LogChunkLines {
			return c, errLogChunk
		}
		at += Instant(step)
		c.Lines = append(c.Lines, LogLine{Number: c.First + uint32(len(c.Lines)), At: at, Text: text[n : n+int(size)]})
		text = text[n+int(size):]
	}
	return c, nil
}

// DecodeLog decodes the documents of a log, in any order, and returns the chunks in order.
func DecodeLog(documents []MetaEntry) (chunks []LogChunk, err error) {
	for _, d := range documents {
		c, err := decodeLogChunk(d.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name, err)
		}
		chunks = append(chunks, c)
	}
	slices.SortFunc(chunks, func(a, b LogChunk) int { return int(a.Number) - int(b.Number) })
	return chunks, nil
}

// LogLines returns the lines after number after. One entry stands for each gap of lines that were not kept.
func LogLines(chunks []LogChunk, after uint32) (lines []LogLine) {
	next := uint32(1)
	for i := range chunks {
		c := &chunks[i]
		if c.First > next && c.First-1 > after && len(c.Lines) > 0 {
			missing := c.First - max(next, after+1)
			lines = append(lines, LogLine{
				Number: c.First - 1, At: c.Lines[0].At, Missing: missing,
				Text: fmt.Sprintf("… %d lines are missing …", missing),
			})
		}
		for _, l := range c.Lines {
			if l.Number > after {
				l.Text = strings.Clone(l.Text)
				lines = append(lines, l)
			}
		}
		next = c.First + uint32(len(c.Lines))
	}
	return lines
}
