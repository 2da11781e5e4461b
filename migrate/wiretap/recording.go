package wiretap

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
	"unicode/utf8"
)

// A recording is lines of JSON: a header, then the events in order. Bytes are text, or base64 if they are not UTF-8.
//
//	{"recording":1,"protocol":"beanstalk","server":"old:11300","at":"2026-01-02T15:04:05Z"}
//	{"t":0.001,"c":1,"e":"open"}
//	{"t":0.002,"c":1,"e":">","text":"put 0 0 60 2\r\nhi\r\n"}
//	{"t":0.003,"c":1,"e":"<","text":"INSERTED 1\r\n"}
//	{"t":0.004,"c":1,"e":"close"}

// Header is the first line of a recording.
type Header struct {
	Recording int       `json:"recording"` // the version of the format
	Protocol  string    `json:"protocol"`
	Server    string    `json:"server"`
	At        time.Time `json:"at"`
}

// recordingVersion is the version of the format that Recorder writes.
const recordingVersion = 1

// entry is a line after the header.
type entry struct {
	T    float64 `json:"t"` // seconds since the start
	C    int     `json:"c"` // connection
	E    string  `json:"e"`
	Text string  `json:"text,omitempty"`
	Data []byte  `json:"data,omitempty"`
}

var kindNames = [...]string{Opened: "open", FromClient: ">", FromServer: "<", Closed: "close"}

// Recorder writes events to a file. After an error it stops writing, but clients are not affected.
type Recorder struct {
	mu    sync.Mutex // guards the fields below
	out   *bufio.Writer
	enc   *json.Encoder
	err   error
	bytes int64
	conns int
}

// NewRecorder writes a header.
func NewRecorder(w io.Writer, protocol, server string) (*Recorder, error) {
	if err := CheckProtocol(protocol); err != nil {
		return nil, err
	}
	out := bufio.NewWriterSize(w, 64<<10)
	r := &Recorder{out: out, enc: json.NewEncoder(out)}
	r.enc.SetEscapeHTML(false)
	return r,
		r.enc.Encode(Header{Recording: recordingVersion, Protocol: protocol, Server: server, At: time.Now().UTC()})
}

// Watch implements Watcher.
func (r *Recorder) Watch(e Event) {
	line := entry{T: e.At.Seconds(), C: e.Conn, E: kindNames[e.Kind]}
	if utf8.Valid(e.Data) {
		line.Text = string(e.Data)
	} else {
		line.Data = e.Data
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	r.bytes += int64(len(e.Data))
	if e.Kind == Opened {
		r.conns++
	}
	r.err = r.enc.Encode(line)
}

// Flush writes the buffer. It returns the first error of the recorder.
func (r *Recorder) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = r.out.Flush()
	}
	return r.err
}

// Counts returns the recorded connections and bytes.
func (r *Recorder) Counts() (conns int, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conns, r.bytes
}

// Recording reads a recording.
type Recording struct {
	Header
	in   *json.Decoder
	line int
}

// ReadRecording reads the header.
func ReadRecording(r io.Reader) (*Recording, error) {
	rec := &Recording{in: json.NewDecoder(bufio.NewReaderSize(r, 64<<10)), line: 1}
	if err := rec.in.Decode(&rec.Header); err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	if rec.Recording != recordingVersion {
		return nil, fmt.Errorf("line 1: not a recording of version %d", recordingVersion)
	}
	rec.Protocol = ProtocolNamed(rec.Protocol)
	return rec, CheckProtocol(rec.Protocol)
}

// next returns the next event; io.EOF at the end.
func (r *Recording) next() (Event, error) {
	var e entry
	r.line++
	if err := r.in.Decode(&e); err != nil {
		if errors.Is(err, io.EOF) {
			return Event{}, io.EOF
		}
		return Event{}, fmt.Errorf("line %d: %w", r.line, err)
	}
	out := Event{At: time.Duration(e.T * float64(time.Second)), Conn: e.C, Data: e.Data}
	if e.Text != "" {
		out.Data = []byte(e.Text)
	}
	for k, name := range kindNames {
		if name == e.E {
			out.Kind = Kind(k)
			return out, nil
		}
	}
	return out, fmt.Errorf("line %d: unknown event %q", r.line, e.E)
}

// behindFor is the time by which the second server may be behind a recording that is played at its original speed.
const behindFor = 50 * time.Millisecond

// Play passes a recording to a comparison, at its original speed, or with fast as fast as possible. While the second
// server is behind, the recording stops, so that its pauses stay as long as they were: jobs may be delayed, or have
// leases that end. At the end of a truncated recording, the open connections are closed.
func (r *Recording) Play(c *Comparer, fast bool) error {
	began, last, open := time.Now(), time.Duration(0), make(map[int]bool)
	defer func() {
		for conn := range open {
			c.Watch(Event{Conn: conn, Kind: Closed})
		}
	}()
	for {
		e, err := r.next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
		if !fast && e.At-last > behindFor {
			c.waitPlayed()
			if behind := time.Since(began) - last; behind > behindFor {
				began = began.Add(behind)
			}
		}
		if pause := e.At - time.Since(began); pause > 0 && !fast {
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-c.Ended():
				timer.Stop()
				return nil
			}
		}
		last = e.At
		switch e.Kind {
		case Opened:
			open[e.Conn] = true
		case Closed:
			delete(open, e.Conn)
		case FromClient, FromServer:
		}
		c.Watch(e)
	}
}
