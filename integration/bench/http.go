package main

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// httpAPI loads the HTTP API with pipelined requests.
type httpAPI struct{}

func (httpAPI) greet() func(io.ReadWriter) error { return nil }

func (httpAPI) caller(*tally) session { return nil }

// appendRequest adds a POST request.
func appendRequest(b []byte, path, body string) []byte {
	return fmt.Appendf(b, "POST /api/v1/%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", path,
		len(body), body)
}

func (httpAPI) producer(t *tally, inFlight int) session {
	tail := `","body":` + strconv.Quote(t.body) + "}"
	return &httpProducer{newPipeline(t, inFlight, func(b []byte, n int) []byte {
		return appendRequest(b, "jobs", `{"queue":"`+t.queue(n)+tail)
	})}
}

func (httpAPI) worker(t *tally) session { return &httpWorker{tally: t} }

// httpResponse is an answer; its size is 0 while it is not complete.
type httpResponse struct {
	status string
	body   []byte
	size   int
}

// nextResponse reads the first response of b.
func nextResponse(b []byte) (httpResponse, error) {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 {
		return httpResponse{}, nil
	}
	head, size, length := b[:end+2], end+4, 0
	first, _ := nextLine(head)
	if bytes.Contains(head, []byte("\r\nTransfer-Encoding: chunked\r\n")) {
		body, used, err := unchunk(b[size:])
		if err != nil || used == 0 {
			return httpResponse{}, err
		}
		return httpResponse{status: string(word(first, 1)), body: body, size: size + used}, nil
	}
	if _, rest, found := bytes.Cut(head, []byte("\r\nContent-Length: ")); found {
		line, _ := nextLine(rest)
		var err error
		if length, err = atoi(line); err != nil {
			return httpResponse{}, err
		}
	}
	if len(b) < size+length {
		return httpResponse{}, nil
	}
	return httpResponse{status: string(word(first, 1)), body: b[size : size+length], size: size + length}, nil
}

// unchunk joins the chunks of a body; used is 0 while it is not complete.
func unchunk(b []byte) (body []byte, used int, err error) {
	for {
		line, head := nextLine(b[used:])
		if head == 0 {
			return nil, 0, nil
		}
		n, err := strconv.ParseUint(string(line), 16, 31)
		if err != nil {
			return nil, 0, fmt.Errorf("a chunk of %q bytes", line)
		}
		end := used + head + int(n)
		if len(b) < end+len("\r\n") {
			return nil, 0, nil
		}
		body, used = append(body, b[used+head:end]...), end+len("\r\n")
		if n == 0 {
			return body, used, nil
		}
	}
}

// httpProducer reads a response for each submission.
type httpProducer struct{ pipeline }

func (p *httpProducer) feed(c *conn, b []byte) (int, error) {
	used := 0
	for {
		r, err := nextResponse(b[used:])
		switch {
		case err != nil:
			return 0, err
		case r.size == 0:
			p.fill(c)
			return used, nil
		case r.status != "201":
			return 0, fmt.Errorf("http answered a submission with %s %s", r.status, r.body)
		}
		used += r.size
		p.answered(c)
	}
}

// httpWorker leases jobs, and sends each completion with the next lease in one write.
type httpWorker struct {
	tally     *tally
	completes bool // the next response is to a completion
}

func (w *httpWorker) begin(c *conn) { w.lease(c) }

func (w *httpWorker) lease(c *conn) {
	c.out = appendRequest(c.out, "queues/"+w.tally.queue(0)+"/lease?wait=60s", "{}")
}

var httpLease = []byte(`"lease":"`)

func (w *httpWorker) feed(c *conn, b []byte) (int, error) {
	used := 0
	for {
		r, err := nextResponse(b[used:])
		if err != nil || r.size == 0 {
			return used, err
		}
		used += r.size
		switch {
		case w.completes && r.status == "204":
			w.completes = false
			w.tally.finish(c.now)
		case !w.completes && r.status == "204": // no job came in time
			w.lease(c)
		case !w.completes && r.status == "200":
			_, rest, _ := bytes.Cut(r.body, httpLease)
			token, _, _ := bytes.Cut(rest, []byte{'"'})
			c.out = appendRequest(c.out, "leases/"+string(token)+"/complete", "{}")
			w.lease(c)
			w.completes = true
		default:
			return 0, fmt.Errorf("http answered a worker with %s %s", r.status, r.body)
		}
	}
}
