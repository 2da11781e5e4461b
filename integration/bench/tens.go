package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// sqsName is the group of SQS: messages are sent, received and deleted by tens, as that protocol has it at most. What
// the same costs over the HTTP API is beside it.
const sqsName = "sqs"

// ten is how many jobs are in a request.
const ten = 10

// tens are the requests of a protocol that has batches over HTTP.
type tens struct {
	name string
	// mark precedes the name of a lease in a reply; a quote ends the name.
	mark string
	// The three requests; n is the number of the first job, leases are the names of the leases.
	send   func(b []byte, t *tally, n int, jobs int) []byte
	take   func(b []byte, t *tally) []byte
	finish func(b []byte, t *tally, leases [][]byte) []byte
	// refused is in each reply that refuses a job.
	refused string
}

// tensDialect is a dialect of batches; it is compared, so that the requests are behind a pointer.
type tensDialect struct{ *tens }

var (
	sqsTens = tensDialect{&tens{
		name: "sqs", mark: `"ReceiptHandle":"`, refused: `"Failed":`,
		send: func(b []byte, t *tally, n, jobs int) []byte {
			return appendSQS(b, t, "SendMessageBatch",
				entries(jobs, func(i int) string { return `"MessageBody":"` + t.body + `"` }))
		},
		take: func(b []byte, t *tally) []byte {
			return appendSQS(b, t, "ReceiveMessage",
				`"MaxNumberOfMessages":10,"WaitTimeSeconds":20,"VisibilityTimeout":3600`)
		},
		finish: func(b []byte, t *tally, leases [][]byte) []byte {
			return appendSQS(b, t, "DeleteMessageBatch",
				entries(len(leases), func(i int) string { return `"ReceiptHandle":"` + string(leases[i]) + `"` }))
		},
	}}
	apiTens = tensDialect{&tens{
		name: "api", mark: `"lease":"`, refused: `"ok":false`,
		send: func(b []byte, t *tally, n, jobs int) []byte {
			one := `{"queue":"` + t.queue(n) + `","body":"` + t.body + `"}`
			return appendRequest(b, "jobs", `{"jobs":[`+strings.Repeat(one+",", jobs-1)+one+"]}")
		},
		take: func(b []byte, t *tally) []byte {
			return appendRequest(b, "leases", `{"queues":["`+t.queue(0)+`"],"max":10,"wait_s":20,"lease_for_s":3600}`)
		},
		finish: func(b []byte, _ *tally, leases [][]byte) []byte {
			return appendRequest(b, "leases/complete",
				`{"leases":[{"lease":"`+string(bytes.Join(leases, []byte(`"},{"lease":"`)))+`"}]}`)
		},
	}}
)

// entries are those of a batch request of SQS.
func entries(n int, of func(i int) string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"Id":"` + strconv.Itoa(i) + `",` + of(i) + "}")
	}
	return `"Entries":[` + b.String() + "]"
}

// appendSQS adds a request of SQS.
func appendSQS(b []byte, t *tally, action, members string) []byte {
	body := `{"QueueUrl":"` + t.queue(0) + `",` + members + "}"
	return fmt.Appendf(b,
		"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.%s\r\nContent-Type: application/x-amz-json-1.0\r\n"+
			"Content-Length: %d\r\n\r\n%s", action, len(body), body)
}

// createQueue makes the queue of the load over SQS.
func createQueue(address string) error {
	req, err := http.NewRequest(http.MethodPost, "http://"+address, strings.NewReader(`{"QueueName":"`+plainQueue+`"}`))
	if err != nil {
		return err
	}
	req.Header.Set("X-Amz-Target", "AmazonSQS.CreateQueue")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // its status says it
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("CreateQueue: %s", resp.Status)
	}
	return nil
}

func (tensDialect) greet() func(io.ReadWriter) error { return nil }

func (tensDialect) caller(*tally) session { return nil }

func (d tensDialect) producer(t *tally, inFlight int) session {
	requests := max(inFlight/ten, 1)
	return &tensProducer{tens: d.tens, tally: t, requests: requests, clock: newClock(requests)}
}

// tensProducer keeps some batches in flight.
type tensProducer struct {
	*tens

	tally    *tally
	requests int
	clock    clock
	sizes    []int // of the batches in flight
}

func (p *tensProducer) begin(c *conn) { p.fill(c) }

func (p *tensProducer) fill(c *conn) {
	for len(p.sizes) < p.requests && p.tally.issued < p.tally.total {
		if c.stalled = !p.tally.room(); c.stalled {
			return
		}
		jobs := p.batch()
		c.out = p.send(c.out, p.tally, p.tally.issued, jobs)
		p.tally.issued += jobs
		p.tally.issuedAt = c.now
		p.clock.start(c.now)
		p.sizes = append(p.sizes, jobs)
	}
}

func (p *tensProducer) feed(c *conn, b []byte) (int, error) {
	used := 0
	for {
		r, err := nextResponse(b[used:])
		if err != nil {
			return 0, err
		}
		if r.size == 0 {
			p.fill(c)
			return used, nil
		}
		if err := p.check(r); err != nil {
			return 0, err
		}
		used += r.size
		took := p.clock.stop(c.now)
		for range p.sizes[0] {
			p.tally.ack(took, c.now)
		}
		p.sizes = p.sizes[1:]
	}
}

func (d *tens) check(r httpResponse) error {
	if r.status[0] != '2' || bytes.Contains(r.body, []byte(d.refused)) {
		return fmt.Errorf("%s answered with %s %s", d.name, r.status, r.body)
	}
	return nil
}

func (d tensDialect) worker(t *tally) session { return &tensWorker{tens: d.tens, tally: t} }

// tensWorker takes up to ten jobs, and finishes them in one request that it sends with the next taking.
type tensWorker struct {
	*tens

	tally     *tally
	took      func(c *conn) // called when it has jobs; may be nil
	finishing int           // jobs whose end the next reply confirms; zero: it brings jobs
}

func (w *tensWorker) begin(c *conn) { c.out = w.take(c.out, w.tally) }

func (w *tensWorker) feed(c *conn, b []byte) (int, error) {
	used := 0
	for {
		r, err := nextResponse(b[used:])
		if err != nil || r.size == 0 {
			return used, err
		}
		if err := w.check(r); err != nil {
			return 0, err
		}
		used += r.size
		if w.finishing > 0 {
			for ; w.finishing > 0; w.finishing-- {
				w.tally.finish(c.now)
			}
			continue
		}
		if leases := namesIn(r.body, w.mark); len(leases) > 0 {
			c.out = w.finish(c.out, w.tally, leases)
			w.finishing = len(leases)
			if w.took != nil {
				w.took(c)
			}
		}
		c.out = w.take(c.out, w.tally)
	}
}

// namesIn are the texts in a reply that follow a mark, up to their quotes.
func namesIn(body []byte, mark string) (names [][]byte) {
	for {
		_, rest, found := bytes.Cut(body, []byte(mark))
		if !found {
			return names
		}
		name, more, _ := bytes.Cut(rest, []byte{'"'})
		names, body = append(names, name), more
	}
}

// batch is how many jobs the next request has: one where jobs are submitted one at a time.
func (p *tensProducer) batch() int {
	jobs := min(ten, p.tally.total-p.tally.issued)
	if p.tally.backlog > 0 {
		jobs = min(jobs, p.tally.backlog)
	}
	return jobs
}
