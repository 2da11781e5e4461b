package main

import (
	"bytes"
	"fmt"
	"io"
)

// beanstalkName is the group of the Beanstalk protocol. beanstalkd is also what Workq is compared with.
const beanstalkName = "beanstalk"

type beanstalk struct{}

func (beanstalk) greet() func(io.ReadWriter) error { return nil }

func (beanstalk) caller(*tally) session { return nil }

func (beanstalk) producer(t *tally, inFlight int) session {
	put := fmt.Appendf(nil, "put 0 0 3600 %d\r\n%s\r\n", len(t.body), t.body)
	return &lineProducer{
		pipeline: newPipeline(t, inFlight, func(b []byte, _ int) []byte { return append(b, put...) }),
		want:     []byte("INSERTED "),
	}
}

func (beanstalk) worker(t *tally) session { return &beanstalkWorker{tally: t} }

// beanstalkWorker reserves jobs, and sends each deletion with the next reservation in one write. It has one job in hand
// at a time: a reservation that waits would hold back the deletions behind it.
type beanstalkWorker struct{ tally *tally }

func (w *beanstalkWorker) begin(c *conn) { c.out = append(c.out, "reserve\r\n"...) }

func (w *beanstalkWorker) feed(c *conn, b []byte) (int, error) {
	used := 0
	for {
		line, size := nextLine(b[used:])
		if size == 0 {
			return used, nil
		}
		if bytes.Equal(line, []byte("DELETED")) {
			w.tally.finish(c.now)
			used += size
			continue
		}
		if !bytes.HasPrefix(line, []byte("RESERVED ")) {
			return 0, fmt.Errorf("beanstalk worker got %q", line)
		}
		bodySize, err := atoi(lastWord(line))
		if err != nil {
			return 0, err
		}
		if len(b)-used < size+bodySize+2 {
			return used, nil
		}
		c.out = append(c.out, "delete "...)
		c.out = append(c.out, word(line, 1)...)
		c.out = append(c.out, "\r\nreserve\r\n"...)
		used += size + bodySize + 2
	}
}
