package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"broker/integration/server"
)

// pollResult is the cost of long polls of SQS that wait.
type pollResult struct {
	polls         int
	before, after int64
	asleep        float64 // processor micros a second while nothing happens
	p50, p99      time.Duration
}

// pollsSettle is how long the polls wait before they are looked at.
const pollsSettle = 3 * time.Second

// longPolls has many receivers of SQS wait for a message, and sends some, one at a time.
func (l *lab) longPolls(w io.Writer) error {
	if _, err := raiseDescriptors(uint64(l.polls) + spareDescriptors); err != nil {
		return err
	}
	r, err := l.poll()
	if err != nil {
		return fmt.Errorf("%d long polls: %w", l.polls, err)
	}
	l.facts.polls = append(l.facts.polls, r)
	grid{
		{
			"long polls", "resident before", "with them", "B/poll", "server µs/s asleep", "messages",
			"p50 from send to receiver", "p99",
		},
		{
			thousands(float64(r.polls)), mebibytes(r.before), mebibytes(r.after),
			thousands(float64(r.after-r.before) / float64(r.polls)),
			thousands(r.asleep), thousands(float64(l.wakes)), span(float64(r.p50)), span(float64(r.p99)),
		},
	}.print(w)
	return nil
}

func (l *lab) poll() (r pollResult, err error) {
	r.polls = l.polls
	dir, remove, err := scratch(l.scratch)
	if err != nil {
		return r, err
	}
	defer remove()
	all := optionalProtocols()
	run, err := all[slices.IndexFunc(all, func(d optionalProtocol) bool { return d.name == sqsName })].broker(l.binary,
		dir, "none")
	if err != nil {
		return r, err
	}
	defer cleanup.add(run.stop)()
	if r.before, err = server.ResidentBytes(run.pids...); err != nil {
		return r, err
	}
	t := newTally(l.wakes)
	t.backlog = 1 // the next message only when the last one is deleted
	var wakes histogram
	const buffer = 8 << 10
	pollers, err := connectMany(run.addr, l.polls, buffer, sqsTens, func() session {
		return &tensWorker{tens: sqsTens.tens, tally: t, took: func(c *conn) { wakes.add(c.now - t.issuedAt) }}
	})
	if err != nil {
		return r, err
	}
	defer pollers.close()
	if err := runFor(pollers, pollsSettle); err != nil {
		return r, err
	}
	if r.after, err = server.ResidentBytes(run.pids...); err != nil {
		return r, err
	}
	begin, err := server.CPUTime(run.pids...)
	if err != nil {
		return r, err
	}
	if err := runFor(pollers, quietTime); err != nil {
		return r, err
	}
	end, err := server.CPUTime(run.pids...)
	if err != nil {
		return r, err
	}
	r.asleep = float64((end - begin).Microseconds()) / quietTime.Seconds()
	if err := pollers.add(run.addr, sqsTens.producer(t, 1), nil); err != nil {
		return r, err
	}
	err = runAlone(pollers, t.limit(), func() bool { return t.allDone() && t.allAcked() })
	r.p50, r.p99 = wakes.quantile(0.5), wakes.quantile(0.99)
	return r, err
}
