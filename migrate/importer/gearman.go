package importer

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"broker/frontends/gearman/packet"
)

// GearmanPort is the port of Gearman servers.
const GearmanPort = "4730"

// gearman moves the jobs of a gearmand. It takes them like a worker. If a client waits for the result of a job, the job
// is submitted as a foreground job, and the result is passed back.
//
// gearmand shows whether a client waits for a job only by the job's unique. Nearly all clients send a unique. A job
// without one is moved as a background job and fails at the source, so that a waiting client does not see a false
// success.
//
// gearmand does not show a worker the priority of a job, but hands out jobs of high priority first. So the importer
// reads the number of jobs of each priority before each batch, and derives the priorities from that. This is exact as
// long as no other client uses the queue.
//
// A job without a unique gets one of this import here. If the connection to this broker breaks before the answer to a
// job, the job is submitted again, and the broker recognises it while it waits or runs. Another import cannot know the
// job: gearmand numbers its jobs from one after each start.
type gearman struct {
	selection

	name    string // of this import, for the uniques that it gives
	uniques int    // given

	admin, from, to *gearmanConn
	servers         Servers
	relay           *relay
	large           []*relay // one for each large foreground job
	functions       []string // functions left to drain
	window          window

	// registered are the functions registered at from. They stay registered until all jobs are done, because gearmand
	// takes running foreground jobs away from a worker that unregisters their function.
	registered map[string]bool
}

// OpenGearman connects to a gearmand and to this broker's Gearman port.
func OpenGearman(s Servers) (Source, error) {
	from, to, _, err := s.dialBoth(GearmanPort)
	if err != nil {
		return nil, err
	}
	g := &gearman{
		name: rand.Text(), servers: s, from: newGearmanConn(from), to: newGearmanConn(to), window: firstWindow,
		registered: make(map[string]bool),
	}
	admin, _, err := s.dial(s.Source, GearmanPort)
	if err != nil {
		g.Close()
		return nil, err
	}
	g.admin = newGearmanConn(admin)
	g.relay = &relay{source: g.from, servers: s}
	if err := g.served(); err != nil {
		g.Close()
		return nil, atBroker(err)
	}
	return g, nil
}

// Close implements Source. Jobs that were taken and not finished go back to their queues.
func (g *gearman) Close() {
	for _, c := range []*gearmanConn{g.admin, g.from, g.to} {
		if c != nil {
			_ = c.Close() // jobs without an answer count as not moved
		}
	}
	for _, r := range append(g.large, g.relay) {
		if r != nil {
			r.close()
		}
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
		if !g.has(fields[0]) {
			continue
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

// Paused implements Source: gearmand has no paused functions.
func (g *gearman) Paused() ([]string, error) { return nil, nil }

// Reason implements Source.
func (g *gearman) Reason(_, state string) string {
	if state == Leased {
		return "with workers: import again when they are done"
	}
	return "scheduled for later, or came while the import ran: import again, or with --follow"
}

// Move implements Source: it moves a batch of jobs.
func (g *gearman) Move(ctx context.Context) (Batch, error) {
	if len(g.functions) == 0 {
		counts, err := g.Count()
		if err != nil {
			return Batch{}, err
		}
		for _, c := range counts {
			if c.State == Ready && c.Jobs > 0 {
				g.functions = append(g.functions, c.Queue)
			}
		}
	}
	for len(g.functions) > 0 {
		function := g.functions[0]
		if !g.registered[function] {
			g.from.queue(packet.CanDo, []byte(function))
			g.registered[function] = true
		}
		var batch Batch
		jobs, err := g.take()
		if err == nil {
			batch, err = g.submit(ctx, jobs)
		}
		if err != nil || len(jobs) > 0 {
			return batch, err
		}
		g.functions = g.functions[1:]
	}
	return Batch{}, nil
}

// Finish implements Source: it waits for the results of foreground jobs. The jobs that this broker refused return to
// their queues.
func (g *gearman) Finish(ctx context.Context) error {
	var err error
	for _, r := range append(g.large, g.relay) {
		err = errors.Join(err, r.wait(ctx))
	}
	g.from.queue(packet.ResetAbilities)
	return errors.Join(err, g.from.await())
}

// gearmanJob is a job that was taken from the source.
type gearmanJob struct {
	handle, function, unique, body []byte
	given                          string // the unique here of a job without a unique
	priority                       int
	foreground                     bool
}

// take takes the next jobs of the registered functions.
func (g *gearman) take() ([]*gearmanJob, error) {
	levels, err := g.priorities()
	if err != nil {
		return nil, err
	}
	for range g.window {
		g.from.queue(packet.GrabJobUniq)
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
		if p.Type() == packet.NoJob {
			continue
		}
		args, err := splitArgs(p, 4)
		if err != nil {
			return nil, err
		}
		j := &gearmanJob{handle: args[0], function: args[1], unique: args[2], body: args[3]}
		if l := levels[string(j.function)]; l != nil {
			j.priority = l.next()
		}
		jobs = append(jobs, j)
		size += len(j.body)
	}
	g.window.adapt(size)
	return jobs, g.findForeground(jobs)
}

// priorityLevels holds the number of high, normal and low jobs among the next jobs.
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

// priorities counts the waiting jobs of each function by priority.
func (g *gearman) priorities() (map[string]*priorityLevels, error) {
	lines, err := g.admin.text("prioritystatus")
	if err != nil {
		return nil, err
	}
	all := make(map[string]*priorityLevels)
	for _, line := range lines {
		fields := strings.Split(line, "\t") // function, high, normal, low, workers
		if len(fields) != 5 {
			continue
		}
		levels := &priorityLevels{}
		for i := range levels {
			if levels[i], err = strconv.Atoi(fields[i+1]); err != nil {
				return nil, fmt.Errorf("prioritystatus: %w", err)
			}
		}
		all[fields[0]] = levels
	}
	return all, nil
}

// findForeground finds the jobs with a waiting client.
func (g *gearman) findForeground(jobs []*gearmanJob) error {
	for _, j := range jobs {
		g.from.queue(packet.GetStatusUnique, j.unique)
	}
	if err := g.from.flush(); err != nil {
		return err
	}
	for _, j := range jobs {
		p, err := g.from.expect(packet.StatusResUnique)
		if err != nil {
			return err
		}
		args, err := splitArgs(p, 6) // unique, known, running, numerator, denominator, clients that wait
		if err != nil {
			return err
		}
		j.foreground = string(args[5]) != "0"
	}
	return nil
}

var (
	submitBackground = map[int]packet.Type{1: packet.SubmitJobHighBg, 0: packet.SubmitJobBg, -1: packet.SubmitJobLowBg}
	submitForeground = map[int]packet.Type{1: packet.SubmitJobHigh, 0: packet.SubmitJob, -1: packet.SubmitJobLow}
)

// submit submits jobs to this broker and, once they are acknowledged, ends them at the source. It keeps refused jobs
// until Finish, so that the source does not hand them out again.
func (g *gearman) submit(ctx context.Context, jobs []*gearmanJob) (batch Batch, _ error) {
	var background []*gearmanJob
	for _, j := range jobs {
		if !j.foreground {
			background = append(background, j)
		}
	}
	reasons := make(map[*gearmanJob]string)
	settled, lost := g.submitBackground(background, reasons)
	if lost != nil {
		jobs = background[:settled] // what this broker has acknowledged ends at the source
	}
	moved := make(map[string]int)
	for _, j := range jobs {
		if j.foreground {
			if lost == nil {
				lost = g.submitForeground(ctx, j, reasons)
			}
			if lost != nil {
				continue
			}
		}
		reason, no := reasons[j]
		switch {
		case no:
			batch.Refused = append(batch.Refused, j.refused(reason))
			continue
		case j.foreground: // ends at the source when its result arrives
		case len(j.unique) == 0:
			g.from.queue(packet.WorkFail, j.handle)
		default:
			g.from.queue(packet.WorkComplete, j.handle, nil)
		}
		moved[string(j.function)]++
	}
	for function, n := range moved {
		batch.Moved = append(batch.Moved, Count{function, Ready, n})
	}
	if len(jobs) == 0 {
		return batch, atBroker(lost)
	}
	return batch, errors.Join(atBroker(lost), g.from.await())
}

// submitBackground submits jobs and collects the errors of refused jobs. It returns the number of jobs that this broker
// has acknowledged or refused. The broker closes the connection after a job that is too large, sometimes before the
// importer has read the reply. If that happens twice at the same job, and the broker answers otherwise, this job is too
// large.
func (g *gearman) submitBackground(jobs []*gearmanJob, reasons map[*gearmanJob]string) (settled int, _ error) {
	for _, j := range jobs {
		if len(j.unique) == 0 {
			g.uniques++
			j.given = fmt.Sprintf("broker-import-%s-%d", g.name, g.uniques)
		}
	}
	alone := false
	for settled < len(jobs) {
		rest := jobs[settled:]
		if alone {
			rest = rest[:1]
		}
		answered, err := g.trySubmit(rest, reasons)
		settled += answered
		if err == nil {
			alone = false
			continue
		}
		if err := g.reconnect(); err != nil {
			return settled, err
		}
		if alone && answered == 0 {
			reasons[rest[0]] = err.Error()
			settled++
		}
		alone = !alone || answered > 0
	}
	return settled, nil
}

// reconnect replaces the connection to this broker, which is lost. It returns an error if the broker does not serve the
// new one: then it has refused no job.
func (g *gearman) reconnect() error {
	_ = g.to.Close() // it is lost
	conn, _, err := g.servers.dial(g.servers.Target, GearmanPort)
	if err != nil {
		return err
	}
	g.to = newGearmanConn(conn)
	return g.served()
}

// served returns an error if this broker does not answer, such as a node of a cluster that has no leader.
func (g *gearman) served() error {
	err := g.to.await()
	if errors.Is(err, errClosed) {
		err = fmt.Errorf("%w before it answered; 'broker healthcheck' says whether it serves clients", err)
	}
	return err
}

// trySubmit submits jobs over one connection and returns the number of answered jobs.
func (g *gearman) trySubmit(jobs []*gearmanJob, reasons map[*gearmanJob]string) (answered int, err error) {
	for _, j := range jobs {
		g.to.queue(submitBackground[j.priority], j.function, []byte(cmp.Or(string(j.unique), j.given)), j.body)
	}
	sendErr := g.to.flush() // replies may have arrived anyway
	for _, j := range jobs {
		_, err := g.to.expect(packet.JobCreated)
		var refusal serverError
		switch {
		case errors.As(err, &refusal):
			reasons[j] = refusal.Error()
		case err != nil:
			return answered, errors.Join(sendErr, err)
		}
		answered++
	}
	return answered, nil
}

// largeBody is the size above which a foreground job gets its own connection. If the broker closes it because the job
// is too large, no other job loses its result.
const largeBody = 64 << 10

// submitForeground submits a job whose client waits.
func (g *gearman) submitForeground(ctx context.Context, j *gearmanJob, reasons map[*gearmanJob]string) error {
	r := g.relay
	if len(j.body) >= largeBody {
		r = &relay{source: g.from, servers: g.servers}
	}
	err := r.submit(ctx, j)
	var refusal serverError
	isRefused := errors.As(err, &refusal)
	if err != nil && !isRefused && r != g.relay && ctx.Err() == nil {
		if lost := g.reconnect(); lost != nil {
			r.close()
			return lost
		}
		isRefused = true // it is too large
	}
	switch {
	case isRefused:
		reasons[j] = err.Error()
		if r != g.relay {
			r.close()
		}
		return nil
	case r != g.relay:
		g.large = append(g.large, r)
	}
	return err
}

// refused describes a job that this broker did not accept.
func (j *gearmanJob) refused(reason string) Refused {
	job := map[string]any{"function": string(j.function), "unique": string(j.unique), "priority": j.priority}
	if utf8.Valid(j.body) {
		job["body"] = string(j.body)
	} else {
		job["body_base64"] = base64.StdEncoding.EncodeToString(j.body)
	}
	return Refused{string(j.function), Ready, string(j.handle), reason, job}
}
