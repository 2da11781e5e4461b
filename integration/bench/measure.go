package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"broker/integration/server"
)

// figures are the results of one measurement of one contender; zero if the mode does not measure them.
type figures struct {
	jobsPerSec    float64 // from the first submission to the last finish
	submitsPerSec float64 // to the last acknowledgement
	p50, p99      time.Duration
	serverMicros  float64 // processor time of the server a job
	leaderMicros  float64 // of a cluster's leader, in serverMicros
	loadMicros    float64 // of the load program; close to a whole core it is what limits the figures
	bytesPerJob   float64
}

// mode is a kind of load.
type mode struct {
	letter string
	title  string
	share  float64 // part of the run's jobs
	rate   string  // which figure contenders are compared by
	run    func(r *running, d dialect, jobs int) (figures, error)
	// fits reports whether a dialect has this kind of job.
	fits func(d dialect) bool
}

func always(dialect) bool { return true }

// bytesRate is the result of the mode that measures memory.
const bytesRate = "bytes/job"

func modes() []mode {
	return []mode{
		{"a", "background jobs, 64 in flight per producer, workers at once", 1, "jobs/s", background(64,
			&usual), always},
		{"b", "background jobs, 1 in flight per producer, workers at once", 0.5, "submits/s", background(1,
			&usual), always},
		{"c", "foreground round trips", 0.3, "jobs/s", foreground, func(d dialect) bool {
			return d.caller(newTally(0)) != nil
		}},
		{"d", "submit all, then drain", 1, "jobs/s", drain, always},
		{"e", "memory of waiting jobs", 5, bytesRate, memory, costsMemory},
		{
			"w", "64 producers and 64 workers, those of Gearman with 16 jobs in hand", 2, "jobs/s",
			background(64, &wide), hasManyClients,
		},
	}
}

// hasManyClients reports whether a protocol is measured with many clients.
func hasManyClients(d dialect) bool { return d == gearman{} || d == beanstalk{} }

// costsMemory reports whether all servers of a protocol keep the jobs.
func costsMemory(d dialect) bool {
	_, is := d.(qless)
	return !is
}

// meter measures the processor time of the server and of the load generator.
type meter struct {
	*running
	server, lead, load time.Duration
}

func startMeter(r *running) (*meter, error) {
	m := &meter{running: r}
	var err error
	if m.server, err = server.CPUTime(r.pids...); err != nil {
		return nil, err
	}
	if r.leader != 0 {
		if m.lead, err = server.CPUTime(r.leader); err != nil {
			return nil, err
		}
	}
	m.load, err = server.CPUTime(os.Getpid())
	return m, err
}

func (m *meter) end(f *figures, jobs int) error {
	used, err := server.CPUTime(m.pids...)
	if err != nil {
		return err
	}
	load, err := server.CPUTime(os.Getpid())
	if err != nil {
		return err
	}
	perJob := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / float64(jobs) }
	f.serverMicros, f.loadMicros = perJob(used-m.server), perJob(load-m.load)
	if m.leader != 0 {
		lead, err := server.CPUTime(m.leader)
		if err != nil {
			return err
		}
		f.leaderMicros = perJob(lead - m.lead)
	}
	return nil
}

// connect opens the connections of the producers or of the workers.
func connect(t *tally, addr string, d dialect, sessions func() session) (*loop, error) {
	return connectMany(addr, t.clients, inSize, d, sessions)
}

// connectMany is connect with a given number of connections and read buffer size.
func connectMany(addr string, n, buffer int, d dialect, sessions func() session) (*loop, error) {
	l, err := newLoop()
	if err != nil {
		return nil, err
	}
	l.buffer = buffer
	addrs := strings.Split(addr, ",")
	for i := range n {
		if err := l.add(addrs[i%len(addrs)], sessions(), d.greet()); err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

func rate(jobs int, ns int64) float64 { return float64(jobs) / (float64(ns) / 1e9) }

// steadyBacklog is deep enough that no worker waits for a producer.
const steadyBacklog = 2048

// background submits and processes jobs at the same time.
func background(inFlight int, by *loadSize) func(*running, dialect, int) (figures, error) {
	return func(r *running, d dialect, jobs int) (figures, error) {
		t := newTally(jobs)
		t.loadSize, t.backlog = *by, steadyBacklog
		producers, err := connect(t, r.addr, d, func() session { return d.producer(t, inFlight) })
		if err != nil {
			return figures{}, err
		}
		defer producers.close()
		return timed(r, d, t, producers)
	}
}

// foreground submits jobs and waits for each result.
func foreground(r *running, d dialect, jobs int) (figures, error) {
	t := newTally(jobs)
	callers, err := connect(t, r.addr, d, func() session { return d.caller(t) })
	if err != nil {
		return figures{}, err
	}
	defer callers.close()
	return timed(r, d, t, callers)
}

// timed runs submitters beside workers.
func timed(r *running, d dialect, t *tally, submitters *loop) (figures, error) {
	workers, err := connect(t, r.addr, d, func() session { return d.worker(t) })
	if err != nil {
		return figures{}, err
	}
	defer workers.close()
	var f figures
	m, err := startMeter(r)
	if err != nil {
		return f, err
	}
	begin := nanotime()
	if err := runBoth(submitters, workers, t); err != nil {
		return f, err
	}
	f.jobsPerSec = rate(t.total, max(t.lastDone, t.lastAck)-begin)
	f.submitsPerSec = rate(t.total, t.lastAck-begin)
	f.p50, f.p99 = t.latency.quantile(0.5), t.latency.quantile(0.99)
	return f, m.end(&f, t.total)
}

// submitAll submits jobs without workers.
func submitAll(r *running, d dialect, t *tally) (ns int64, err error) {
	producers, err := connect(t, r.addr, d, func() session { return d.producer(t, 64) })
	if err != nil {
		return 0, err
	}
	defer producers.close()
	begin := nanotime()
	err = runAlone(producers, t.limit(), t.allAcked)
	return t.lastAck - begin, err
}

func drain(r *running, d dialect, jobs int) (figures, error) {
	t := newTally(jobs)
	var f figures
	m, err := startMeter(r)
	if err != nil {
		return f, err
	}
	submitting, err := submitAll(r, d, t)
	if err != nil {
		return f, fmt.Errorf("submit: %w", err)
	}
	workers, err := connect(t, r.addr, d, func() session { return d.worker(t) })
	if err != nil {
		return f, err
	}
	defer workers.close()
	begin := nanotime()
	if err := runAlone(workers, t.limit(), t.allDone); err != nil {
		return f, fmt.Errorf("drain: %w", err)
	}
	f.submitsPerSec, f.jobsPerSec = rate(jobs, submitting), rate(jobs, t.lastDone-begin)
	f.p50, f.p99 = t.latency.quantile(0.5), t.latency.quantile(0.99)
	return f, m.end(&f, jobs)
}

func memory(r *running, d dialect, jobs int) (figures, error) {
	before, err := server.ResidentBytes(r.pids...)
	if err != nil {
		return figures{}, err
	}
	t := newTally(jobs)
	m, err := startMeter(r)
	if err != nil {
		return figures{}, err
	}
	submitting, err := submitAll(r, d, t)
	if err != nil {
		return figures{}, err
	}
	after, err := server.ResidentBytes(r.pids...)
	if err != nil {
		return figures{}, err
	}
	f := figures{submitsPerSec: rate(jobs, submitting), bytesPerJob: float64(after-before) / float64(jobs)}
	return f, m.end(&f, jobs)
}
