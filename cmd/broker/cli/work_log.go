package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// What a program writes goes to the log of its job once a second. Of what it writes in that time the first and the last lines are sent, so
// many and so much of each; the log of a job holds no more.
const (
	logEvery    = time.Second
	logTimeout  = 10 * time.Second
	lastTries   = 5 // to send the last lines
	maxLogHalf  = 499
	maxLogBytes = 32 << 10
	maxLogLine  = 3 << 10 // the rest of a line is dropped
)

// programLog sends what a program writes to the log of its job. Several goroutines may add, one sends.
type programLog struct {
	send    func(lines []string) (stop bool, err error)
	refused bool // nothing more is sent

	mu      sync.Mutex // guards the fields below
	first   logLines
	last    logLines
	missing int // lines between the two
}

// logLines are lines that wait to be sent.
type logLines struct {
	texts []string
	bytes int
}

func (l *logLines) full(text string) bool {
	return len(l.texts) >= maxLogHalf || l.bytes+len(text) > maxLogBytes
}

func (l *logLines) add(text string) {
	l.texts = append(l.texts, text)
	l.bytes += len(text)
}

// add puts a line into what waits.
func (l *programLog) add(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.last.texts) == 0 && !l.first.full(text) {
		l.first.add(text)
		return
	}
	for l.last.full(text) {
		l.last.bytes -= len(l.last.texts[0])
		l.last.texts = l.last.texts[1:]
		l.missing++
	}
	l.last.add(text)
}

// take empties what waits.
func (l *programLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.first.texts
	if l.missing > 0 {
		lines = append(lines, fmt.Sprintf("… %d lines are missing …", l.missing))
	}
	lines = append(lines, l.last.texts...)
	l.first, l.last, l.missing = logLines{}, logLines{}, 0
	return lines
}

// flush sends what waits. What could not be sent waits for the next time, unless the broker has refused it: then nothing more is sent.
func (l *programLog) flush() (stop, sent bool) {
	lines := l.take()
	if len(lines) == 0 || l.refused {
		return false, true
	}
	stop, err := l.send(lines)
	var exit *ExitError
	switch refused := errors.As(err, &exit); {
	case refused && (exit.Code == ExitUsage || exit.Code == ExitDenied || exit.Code == ExitNotFound || exit.Code == ExitConflict):
		l.refused = true
	case err != nil:
		l.putBack(lines)
		return false, false
	}
	return stop, true
}

// putBack has lines sent before those that have come meanwhile.
func (l *programLog) putBack(lines []string) {
	newer := l.take()
	for _, text := range append(lines, newer...) {
		l.add(text)
	}
}

// output is one of the program's outputs.
func (l *programLog) output() *logWriter { return &logWriter{to: l} }

// logWriter cuts what is written into lines. One goroutine uses it.
type logWriter struct {
	to      *programLog
	pending []byte // a line without its end
}

// Write implements io.Writer.
func (w *logWriter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		line, rest, ended := bytes.Cut(p, []byte{'\n'})
		w.pending = append(w.pending, line[:min(len(line), maxLogLine-len(w.pending))]...)
		if !ended {
			return n, nil
		}
		w.end()
		p = rest
	}
}

// end ends the line.
func (w *logWriter) end() {
	w.to.add(strings.TrimSuffix(strings.ToValidUTF8(string(w.pending), "�"), "\r"))
	w.pending = w.pending[:0]
}

// close ends a line that has no end.
func (w *logWriter) close() {
	if len(w.pending) > 0 {
		w.end()
	}
}

// logOf is the log of a job.
func (w *worker) logOf(l *leased) *programLog {
	return &programLog{send: func(lines []string) (bool, error) {
		ctx, cancel := context.WithTimeout(context.Background(), logTimeout)
		defer cancel()
		var state struct {
			CancelRequested bool `json:"cancel_requested"`
		}
		_, err := w.client.call(ctx, http.MethodPost, "leases/"+url.PathEscape(l.Token)+"/log", nil, map[string]any{"lines": lines}, &state)
		if err != nil {
			w.say("job %s: log: %v", l.Job.ID, err)
		}
		return state.CancelRequested, err
	}}
}

// logging has a program's outputs go to the log of its job, too, if that is wanted. sending sends them until done is closed; the last lines
// are sent by end.
func (w *worker) logging(l *leased, p *program) (sending func(done <-chan struct{}), end func()) {
	if !w.logs {
		return func(<-chan struct{}) {}, func() {}
	}
	log := w.logOf(l)
	outputs := [2]*logWriter{log.output(), log.output()}
	p.cmd.Stdout, p.cmd.Stderr = io.MultiWriter(p.cmd.Stdout, outputs[0]), io.MultiWriter(p.cmd.Stderr, outputs[1])
	sent := make(chan struct{})
	sending = func(done <-chan struct{}) {
		defer close(sent)
		repeat(logEvery, done, func(context.Context) {
			if stop, _ := log.flush(); stop {
				p.stop()
			}
		})
	}
	return sending, func() {
		if p.cmd.Process != nil { // else nothing was sent either
			<-sent
		}
		for _, o := range outputs {
			o.close()
		}
		for range lastTries {
			if _, sent := log.flush(); sent {
				return
			}
			pause(context.Background(), retryPause)
		}
	}
}
