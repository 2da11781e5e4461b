package importer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// GearmanPort is the port of Gearman servers.
const GearmanPort = "4730"

// gearman moves the jobs of a gearmand. It takes them as a worker does. A job whose client waits for its result is submitted
// as a foreground job, and its result is passed back.
//
// gearmand tells who waits for a job by the job's unique only. Nearly all clients send one. A job without one is moved as a
// background job, and fails at the source, so that a client that waits for it sees no false success.
//
// gearmand does not tell a worker the priority of a job, but hands out jobs of high priority first: the number of jobs of
// each priority, read before each batch, tells the priority of its jobs as long as nobody else submits jobs to the queue or
// takes them.
type gearman struct {
	admin, from, to *gearmanConn
	relay           *relay
	functions       []string // still to be drained
	registered      string   // the function that from has registered
	window          window
}

// OpenGearman connects to a gearmand and to this broker's Gearman port.
func OpenGearman(source, target string) (Source, error) {
	from, to, _, err := dialBoth(source, target, GearmanPort)
	if err != nil {
		return nil, err
	}
	g := &gearman{from: newGearmanConn(from), to: newGearmanConn(to), window: firstWindow}
	admin, _, err := dial(source, GearmanPort)
	if err != nil {
		g.Close()
		return nil, err
	}
	g.admin = newGearmanConn(admin)
	g.relay = &relay{source: g.from, target: target}
	return g, nil
}

// Close implements Source. Jobs that were taken and not finished go back to their queues.
func (g *gearman) Close() {
	for _, c := range []*gearmanConn{g.admin, g.from, g.to} {
		if c != nil {
			_ = c.Close() // what was not answered is not counted on
		}
	}
	if g.relay != nil {
		g.relay.close()
	}
}

// Count implements Source.
func (g *gearman) Count() ([]Count, error) {
	lines, err := g.admin.text("status")
	if err != nil {
		return nil, err
	}
	var counts []Count
	for _, line := range lines {
		fields := strings.Split(line, "\t") // function, jobs, of these running, workers
		if len(fields) != 4 {
			return nil, fmt.Errorf("status: unexpected line %q", line)
		}
		total, err1 := strconv.Atoi(fields[1])
		running, err2 := strconv.Atoi(fields[2])
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("status: %w", err)
		}
		counts = append(counts, Count{fields[0], Ready, total - running}, Count{fields[0], Leased, running})
	}
	return counts, nil
}

// Move implements Source: it moves a batch of jobs of one function.
func (g *gearman) Move(ctx context.Context) ([]Count, error) {
	if len(g.functions) == 0 {
		counts, err := g.Count()
		if err != nil {
			return nil, err
		}
		for _, c := range counts {
			if c.State == Ready && c.Jobs > 0 {
				g.functions = append(g.functions, c.Queue)
			}
		}
	}
	for len(g.functions) > 0 {
		function := g.functions[0]
		jobs, err := g.take(function)
		if err == nil {
			err = g.submit(ctx, jobs)
		}
		if err != nil {
			return nil, fmt.Errorf("function %s: %w", function, err)
		}
		if len(jobs) > 0 {
			return []Count{{function, Ready, len(jobs)}}, nil
		}
		g.functions = g.functions[1:]
	}
	return nil, nil
}

// Finish implements Source: it waits for the results of foreground jobs.
func (g *gearman) Finish(ctx context.Context) error {
	if err := g.relay.wait(ctx); err != nil {
		return err
	}
	return g.await()
}

// await returns when the source has handled all that was sent to it.
func (g *gearman) await() error {
	g.from.queue(packetEchoReq, []byte("handled"))
	if err := g.from.flush(); err != nil {
		return err
	}
	_, err := g.from.expect(packetEchoRes)
	return err
}

// gearmanJob is a job that was taken from the source.
type gearmanJob struct {
	handle, function, unique, body []byte
	priority                       int
	foreground                     bool
}

// take takes the next jobs of a function.
func (g *gearman) take(function string) ([]*gearmanJob, error) {
	levels, err := g.priorities(function)
	if err != nil {
		return nil, err
	}
	if g.registered != function {
		g.from.queue(packetResetAbilities)
		g.from.queue(packetCanDo, []byte(function))
		g.registered = function
	}
	for range g.window {
		g.from.queue(packetGrabJobUniq)
	}
	if err := g.from.flush(); err != nil {
		return nil, err
	}
	var jobs []*gearmanJob
	size := 0
	for range g.window {
		p, err := g.from.read()
		if err != nil {
			return nil, err
		}
		if p.kind == packetNoJob {
			continue
		}
		args, err := p.args(4)
		if err != nil {
			return nil, err
		}
		j := &gearmanJob{handle: args[0], function: args[1], unique: args[2], body: args[3], priority: levels.next()}
		jobs = append(jobs, j)
		size += len(j.body)
	}
	g.window.adapt(size)
	return jobs, g.findForeground(jobs)
}

// priorityLevels holds how many of the next jobs have high, normal and low priority.
type priorityLevels [3]int

func (l *priorityLevels) next() int {
	for i := range l {
		if l[i] > 0 {
			l[i]--
			return 1 - i
		}
	}
	return 0
}

func (g *gearman) priorities(function string) (levels priorityLevels, err error) {
	lines, err := g.admin.text("prioritystatus")
	if err != nil {
		return levels, err
	}
	for _, line := range lines {
		fields := strings.Split(line, "\t") // function, high, normal, low, workers
		if len(fields) != 5 || fields[0] != function {
			continue
		}
		for i := range levels {
			if levels[i], err = strconv.Atoi(fields[i+1]); err != nil {
				return levels, fmt.Errorf("prioritystatus: %w", err)
			}
		}
	}
	return levels, nil
}

// findForeground asks which of the jobs have a client that waits.
func (g *gearman) findForeground(jobs []*gearmanJob) error {
	for _, j := range jobs {
		g.from.queue(packetGetStatusUnique, j.unique)
	}
	if err := g.from.flush(); err != nil {
		return err
	}
	for _, j := range jobs {
		p, err := g.from.expect(packetStatusResUnique)
		if err != nil {
			return err
		}
		args, err := p.args(6) // unique, known, running, numerator, denominator, clients that wait
		if err != nil {
			return err
		}
		j.foreground = string(args[5]) != "0"
	}
	return nil
}

var (
	submitBackground = map[int]packetType{1: packetSubmitJobHighBg, 0: packetSubmitJobBg, -1: packetSubmitJobLowBg}
	submitForeground = map[int]packetType{1: packetSubmitJobHigh, 0: packetSubmitJob, -1: packetSubmitJobLow}
)

// submit submits jobs to this broker and, once it has acknowledged them, ends them at the source.
func (g *gearman) submit(ctx context.Context, jobs []*gearmanJob) error {
	for _, j := range jobs {
		if !j.foreground {
			g.to.queue(submitBackground[j.priority], j.function, j.unique, j.body)
		}
	}
	if err := g.to.flush(); err != nil {
		return err
	}
	for _, j := range jobs {
		if j.foreground {
			if err := g.relay.submit(ctx, j); err != nil {
				return err
			}
			continue
		}
		if _, err := g.to.expect(packetJobCreated); err != nil {
			return fmt.Errorf("this broker: %w", err)
		}
		if len(j.unique) == 0 {
			g.from.queue(packetWorkFail, j.handle)
			continue
		}
		g.from.queue(packetWorkComplete, j.handle, nil)
	}
	if len(jobs) == 0 {
		return nil
	}
	return g.await()
}

// relay passes the results of foreground jobs back to the source, which passes them to its clients. It does not ask for
// exceptions: a job that fails ends with WORK_FAIL.
type relay struct {
	source *gearmanConn
	target string

	conn    *gearmanConn
	created chan []byte   // handles of submitted jobs
	ended   chan struct{} // closed when the reader has ended; err is then set
	err     error

	mu   sync.Mutex        // guards jobs and idle
	jobs map[string][]byte // handle here → handle at the source
	idle *sync.Cond
}

func (r *relay) open() error {
	conn, _, err := dialPatient(r.target, GearmanPort) // a result may take any time
	if err != nil {
		return err
	}
	r.conn = newGearmanConn(conn)
	r.created, r.ended, r.jobs = make(chan []byte, 1), make(chan struct{}), make(map[string][]byte)
	r.idle = sync.NewCond(&r.mu)
	go func() { // ends when the connection does; close waits for it
		r.err = r.pass()
		close(r.ended)
		r.wake()
	}()
	return nil
}

// wake lets wait look again.
func (r *relay) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle.Broadcast()
}

// submit submits a foreground job. Its result goes to the client when there is one.
func (r *relay) submit(ctx context.Context, j *gearmanJob) error {
	if r.conn == nil {
		if err := r.open(); err != nil {
			return fmt.Errorf("this broker: %w", err)
		}
	}
	r.mu.Lock() // until the handle is known, no result may be passed on
	defer r.mu.Unlock()
	r.conn.queue(submitForeground[j.priority], j.function, j.unique, j.body)
	if err := r.conn.flush(); err != nil {
		return fmt.Errorf("this broker: %w", err)
	}
	select {
	case handle := <-r.created:
		r.jobs[string(handle)] = j.handle
		return nil
	case <-r.ended:
		return fmt.Errorf("this broker: %w", r.err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pass reads what this broker sends.
func (r *relay) pass() error {
	for {
		p, err := r.conn.read()
		if err != nil {
			return err
		}
		if p.kind == packetJobCreated {
			r.created <- p.data
			continue
		}
		if err := r.forward(p); err != nil {
			return err
		}
	}
}

// forward sends a packet on under the source's handle.
func (r *relay) forward(p packet) error {
	handle, rest, _ := strings.Cut(string(p.data), "\x00")
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.jobs[handle]
	if !known {
		return fmt.Errorf("packet %d for an unknown job", p.kind)
	}
	args := [][]byte{at}
	if p.kind == packetWorkStatus {
		num, den, _ := strings.Cut(rest, "\x00")
		args = append(args, []byte(num), []byte(den))
	} else if p.kind != packetWorkFail {
		args = append(args, []byte(rest))
	}
	r.source.queue(p.kind, args...)
	if p.kind == packetWorkComplete || p.kind == packetWorkFail {
		delete(r.jobs, handle)
		r.idle.Broadcast()
	}
	return r.source.flush()
}

// wait returns when all results have been passed on.
func (r *relay) wait(ctx context.Context) error {
	if r.conn == nil {
		return nil
	}
	stop := context.AfterFunc(ctx, r.wake)
	defer stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.jobs) > 0 {
		select {
		case <-r.ended:
			return fmt.Errorf("this broker: %w", r.err)
		default:
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%d clients of the source still wait for results: %w", len(r.jobs), ctx.Err())
		}
		r.idle.Wait()
	}
	return nil
}

func (r *relay) close() {
	if r.conn != nil {
		_ = r.conn.Close() // ends the reader
		<-r.ended
	}
}
