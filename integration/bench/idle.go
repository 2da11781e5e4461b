package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// idleResult is the result for one number of idle connections.
type idleResult struct {
	protocol      string
	wanted, held  int
	opened        stepCost // connections a second
	before, after int64
	answered      int // of a sample that was asked afterwards
	sample        int
	alone, amid   stepCost // background jobs without them and beside them
}

// connections measures idle connections, then waiting ones.
func (l *lab) connections(w io.Writer) error {
	limit, err := raiseDescriptors(uint64(l.idle) + spareDescriptors)
	if err != nil {
		return err
	}
	can := min(l.idle, int(limit)-spareDescriptors)
	if can < l.idle {
		_, _ = fmt.Fprintf(w, "only %s connections: a process may have no more than %s descriptors here\n\n", // no harm
			thousands(float64(can)), thousands(float64(limit)))
	}
	out := grid{{
		"protocol", "idle connections", "opened/s", "server µs each", "resident before", "with them", "B/connection",
		"answer when asked", "µs/job without", "µs/job beside them",
	}}
	for _, p := range l.protocols() {
		c, err := l.idleConnections(p, can)
		if err != nil {
			return fmt.Errorf("%d idle connections over %s: %w", can, p.name, err)
		}
		l.facts.idle = append(l.facts.idle, c)
		out = append(out, []string{
			p.name, thousands(float64(c.held)), thousands(c.opened.perSec), micros(c.opened.micros),
			mebibytes(c.before), mebibytes(c.after), thousands(float64(c.after-c.before) / float64(c.held)),
			fmt.Sprintf("%d of %d", c.answered, c.sample), micros(c.alone.micros), micros(c.amid.micros),
		})
	}
	out.print(w)
	_, _ = fmt.Fprintln(w) // screen.Write handles errors
	return l.wakeUps(w)
}

// spareDescriptors is the number of descriptors that a process needs besides its connections; the broker reserves some.
const spareDescriptors = 1800

// raiseDescriptors raises the limit of descriptors of this program and its servers to n, or as far as allowed.
func raiseDescriptors(n uint64) (uint64, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	if limit.Max < n {
		raised := syscall.Rlimit{Cur: n, Max: n}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised); err == nil {
			return n, nil
		}
	}
	// Set it even if unchanged: otherwise Go gives children the limit from before its own start.
	limit.Cur = limit.Max
	return limit.Cur, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}

func (l *lab) idleConnections(p protocol, n int) (idleResult, error) {
	c := idleResult{protocol: p.name, wanted: l.idle, held: n}
	s, end, err := l.open(p, l.durabilities[0])
	if err != nil {
		return c, err
	}
	defer end()
	if c.alone, err = s.steady(l.jobs / 4); err != nil {
		return c, err
	}
	if c.before, err = s.resident(); err != nil {
		return c, err
	}
	conns, err := c.gather(s, n)
	defer func() {
		for _, conn := range conns {
			_ = conn.Close() // nothing was written that matters
		}
	}()
	if err != nil {
		return c, err
	}
	if c.after, err = s.resident(); err != nil {
		return c, err
	}
	if c.amid, err = s.steady(l.jobs / 4); err != nil {
		return c, err
	}
	c.ask(conns, p)
	return c, nil
}

// gather opens the connections.
func (c *idleResult) gather(s *subject, n int) (conns []net.Conn, err error) {
	c.opened, err = s.timed(n, func() (int64, error) {
		begin := nanotime()
		for i := range n {
			conn, err := dialFrom(i, s.addr)
			if err != nil {
				return 0, fmt.Errorf("connection %d: %w", i+1, err)
			}
			conns = append(conns, conn)
			if greet := s.protocol.dialect.greet(); greet != nil {
				if err := greet(conn); err != nil {
					return 0, fmt.Errorf("connection %d: %w", i+1, err)
				}
			}
		}
		return nanotime() - begin, nil
	})
	return conns, err
}

// dialFrom opens the n-th connection; each thousand uses its own loopback address, since one address has too few ports.
func dialFrom(n int, addr string) (net.Conn, error) {
	const perAddress = 5000
	d := net.Dialer{
		Timeout:   10 * time.Second,
		LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+n/perAddress))},
		KeepAlive: -1,
	}
	return d.Dial("tcp", addr)
}

// ask checks whether the connections are still served.
func (c *idleResult) ask(conns []net.Conn, p protocol) {
	for i := 0; i < len(conns); i += max(len(conns)/100, 1) {
		c.sample++
		if ping(conns[i], p) == nil {
			c.answered++
		}
	}
}

func ping(conn net.Conn, p protocol) error {
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, p.ping); err != nil {
		return err
	}
	got := make([]byte, len(p.pong))
	if _, err := io.ReadFull(conn, got); err != nil {
		return err
	}
	if !bytes.Equal(got, []byte(p.pong)) {
		return errors.New("another answer")
	}
	return nil
}

// steady runs the load of mode a.
func (s *subject) steady(jobs int) (stepCost, error) {
	t := newTally(jobs)
	t.backlog = steadyBacklog
	return s.both(t, 64)
}

// both submits and processes the tally's jobs at the same time.
func (s *subject) both(t *tally, inFlight int) (stepCost, error) {
	buffer := max(inSize, 2*len(t.body)+64<<10)
	d := s.protocol.dialect
	submitters, err := connectMany(s.addr, t.clients, inSize, d, func() session { return d.producer(t, inFlight) })
	if err != nil {
		return stepCost{}, err
	}
	defer submitters.close()
	workers, err := connectMany(s.addr, t.clients, buffer, d, func() session { return d.worker(t) })
	if err != nil {
		return stepCost{}, err
	}
	defer workers.close()
	p, err := s.timed(t.total, func() (int64, error) {
		begin := nanotime()
		err := runBoth(submitters, workers, t)
		return max(t.lastDone, t.lastAck) - begin, err
	})
	p.p50, p.p99 = t.latency.quantile(0.5), t.latency.quantile(0.99)
	return p, err
}
