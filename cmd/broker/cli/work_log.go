package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"broker/operate/service"
)

// A program's output is sent to the log of its job once a second. If there is too much output, only the first and the
// last lines are sent, up to these limits, because the log of a job holds no more.
const (
	logEvery    = time.Second
	logTimeout  = 10 * time.Second
	lastTries   = 5 // attempts to send the last lines
	maxLogHalf  = 499
	maxLogBytes = 32 << 10
	maxLogLine  = 3 << 10 // the rest of a line is dropped
)

// programLog sends a program's output to the log of its job. Several goroutines may add lines; one sends them.
type programLog struct {
	send    func(lines []string) (stop bool, err error)
	refused bool // nothing more is sent

	mu      sync.Mutex // guards the fields below
	first   logLines
	last    logLines
	missing int // number of lines left out in between
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

// add adds a line to the waiting lines.
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

// take returns and removes the waiting lines.
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

// flush sends the waiting lines. Lines that could not be sent wait for the next time. If the broker has refused them,
// nothing more is sent.
func (l *programLog) flush() (stop, sent bool) {
	lines := l.take()
	if len(lines) == 0 || l.refused {
		return false, true
	}
	stop, err := l.send(lines)
	switch {
	case isFinal(err) || hasExit(err, ExitConflict):
		l.refused = true
	case err != nil:
		l.putBack(lines)
		return false, false
	}
	return stop, true
}

// putBack puts lines in front of the lines that have arrived since.
func (l *programLog) putBack(lines []string) {
	newer := l.take()
	for _, text := range append(lines, newer...) {
		l.add(text)
	}
}

// output is one of the program's outputs.
func (l *programLog) output() *logWriter { return &logWriter{to: l} }

// logWriter splits output into lines. One goroutine uses it.
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
func (w *worker) logOf(l *service.Lease) *programLog {
	return &programLog{send: func(lines []string) (bool, error) {
		ctx, cancel := within(context.Background(), logTimeout)
		defer cancel()
		var state service.LeaseState
		_, err := w.client.call(ctx, http.MethodPost, "leases/"+url.PathEscape(l.Token)+"/log", nil,
			map[string]any{"lines": lines}, &state)
		if err != nil {
			w.say("job %s: log: %v", l.Job.ID, err)
		}
		return state.CancelRequested, err
	}}
}

// logging also sends a program's outputs to the log of its job, if requested. sending sends them until done is closed.
// end sends the last lines.
func (w *worker) logging(l *service.Lease, p *program) (sending func(done <-chan struct{}), end func()) {
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
