package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"broker/integration/server"
)

// study is a mode that measures how the broker's costs grow.
type study struct {
	letter, title string
	run           func(l *lab, w io.Writer) error
}

func studies() []study {
	return []study{
		{"f", "deep queues", (*lab).deepQueues},
		{"g", "connections that do nothing, and many that wait for one queue", (*lab).connections},
		{"j", "other clients while one builds and breaks a fan of jobs", (*lab).fans},
		{"h", "how the work of a job grows with what else there is", (*lab).growth},
		{"p", "long polls of SQS that wait", (*lab).longPolls},
	}
}

// lab holds the environment of a study.
type lab struct {
	settings

	scratch string // folder for data
	binary  string
	facts   *results
}

// subject is a running broker, loaded over one protocol.
type subject struct {
	*server.BrokerServer

	protocol protocol
	addr     string
}

// protocols returns the protocols that this run measures.
func (l *lab) protocols() []protocol {
	return slices.DeleteFunc(protocols(), func(p protocol) bool { return !slices.Contains(l.groups, p.name) })
}

// open starts a broker with an empty store. The returned function stops it and removes the store.
func (l *lab) open(p protocol, durability string) (*subject, func(), error) {
	dir, remove, err := scratch(l.scratch)
	if err != nil {
		return nil, nil, err
	}
	b, err := server.NewBroker(dir, server.BrokerOptions{Binary: l.binary, Durability: durability})
	if err == nil {
		err = b.Start()
	}
	if err != nil {
		remove()
		return nil, nil, err
	}
	// A restart replaces the process: stop the current one.
	stop := cleanup.add(func() { b.Kill() })
	return &subject{BrokerServer: b, protocol: p, addr: p.addr(b)}, func() { stop(); remove() }, nil
}

// restart kills the broker, starts it on the same store, and returns the time until it was ready.
func (s *subject) restart() (time.Duration, error) {
	const atMost = 10 * time.Minute
	s.Kill()
	begin := time.Now()
	if err := s.Spawn(); err != nil {
		return 0, err
	}
	err := s.WaitReady(atMost)
	return time.Since(begin), err
}

// stepCost is the rate and the cost of a step.
type stepCost struct {
	perSec float64
	micros float64 // of the server's processor time a job
	p50    time.Duration
	p99    time.Duration
}

// timed measures the time and CPU time of a step of n jobs.
func (s *subject) timed(n int, step func() (ns int64, err error)) (stepCost, error) {
	before, err := cpuNanos(s.PID())
	if err != nil {
		return stepCost{}, err
	}
	ns, err := step()
	if err != nil {
		return stepCost{}, fmt.Errorf("%w\nthe broker's log: %s", err, s.Tail())
	}
	after, err := cpuNanos(s.PID())
	return stepCost{perSec: rate(n, ns), micros: float64(after-before) / 1e3 / float64(n)}, err
}

// submit submits the tally's jobs.
func (s *subject) submit(t *tally, inFlight int) (stepCost, error) {
	return s.timed(t.total, func() (int64, error) {
		d := s.protocol.dialect
		producers, err := connectMany(s.addr, t.clients, inSize, d, func() session { return d.producer(t, inFlight) })
		if err != nil {
			return 0, err
		}
		defer producers.close()
		begin := nanotime()
		err = runAlone(producers, t.limit(), t.allAcked)
		return t.lastAck - begin, err
	})
}

// work leases and completes the tally's jobs. With hold it leases all of them first, and returns the rate of the
// leases.
func (s *subject) work(t *tally) (stepCost, error) {
	d := s.protocol.dialect
	workers, err := connect(t, s.addr, d, func() session { return d.worker(t) })
	if err != nil {
		return stepCost{}, err
	}
	defer workers.close()
	p, err := s.timed(t.total, func() (int64, error) {
		begin := nanotime()
		if err := runAlone(workers, t.limit(), t.allDone); err != nil {
			return 0, err
		}
		if t.hold {
			return t.lastLease - begin, nil
		}
		return t.lastDone - begin, nil
	})
	p.p50, p.p99 = t.leases.quantile(0.5), t.leases.quantile(0.99)
	return p, err
}

func (s *subject) resident() (int64, error) { return server.ResidentBytes(s.PID()) }

// diskBytes returns the disk space that the store uses.
func (s *subject) diskBytes() (int64, error) {
	var sum int64
	err := filepath.WalkDir(s.Data, func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			var n int64
			n, err = allocated(path)
			sum += n
		}
		if os.IsNotExist(err) { // the store removes files at any time
			return nil
		}
		return err
	})
	return sum, err
}
