package importer

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// beanstalkd only shows the next delayed, buried and ready job of a tube. All others must be found by their ids, which
// are consecutive numbers. The importer tries ids from the last one down, until it has found all jobs that the tubes
// count.

const (
	// idsAtOnce is the number of ids in one request.
	idsAtOnce = 256

	// idsPerPeek is the number of ids that can be tried in the time that it takes to move a single job.
	idsPerPeek = 1000

	// probeTube is a tube for a test job, which is put and deleted at once to get the last id.
	probeTube = "broker-import-probe"
)

// find finds the jobs that cannot be reserved: delayed and buried jobs, and ready jobs of paused tubes. If they are few
// among very many ids, it returns only one of each tube and state.
func (b *beanstalk) find(ctx context.Context, tubes []tubeStats) ([]*beanstalkJob, error) {
	hidden := make(map[string]bool) // "tube state"
	want := 0
	for _, t := range tubes {
		for _, state := range []string{Ready, Scheduled, Dead} {
			if t.jobs[state] > 0 && (state != Ready || t.paused) {
				hidden[t.name+" "+state] = true
				want += t.jobs[state]
			}
		}
	}
	if want == 0 {
		return nil, nil
	}
	last, err := b.lastID()
	if err != nil {
		return nil, err
	}
	if last == 0 || last/idsPerPeek > want {
		if jobs, err := b.peekAll(tubes, hidden); len(jobs) > 0 || err != nil || last == 0 {
			return jobs, err
		}
	}
	return b.scan(ctx, last, want, hidden)
}

// lastID is the last id that the source has assigned, or 0 if the source does not accept the test job.
func (b *beanstalk) lastID() (int, error) {
	if _, _, err := b.call("use "+probeTube, "USING"); err != nil {
		return 0, err
	}
	words, _, err := b.call("put 0 1000000 60 0\r\n", "INSERTED", "BURIED", "DRAINING", "OUT_OF_MEMORY")
	if err != nil || len(words) < 2 {
		return 0, err
	}
	if _, _, err := b.call("delete "+words[1], "DELETED"); err != nil {
		return 0, err
	}
	id, err := strconv.Atoi(words[1])
	return id - 1, err
}

// peekAll finds the next job of each hidden state of each tube, except those that this broker has refused.
func (b *beanstalk) peekAll(tubes []tubeStats, hidden map[string]bool) ([]*beanstalkJob, error) {
	var jobs []*beanstalkJob
	for _, t := range tubes {
		for _, state := range []string{Ready, Scheduled, Dead} {
			if !hidden[t.name+" "+state] {
				continue
			}
			if _, _, err := b.call("use "+t.name, "USING"); err != nil {
				return nil, err
			}
			words, _, err := b.call("peek-"+tubeStates[state], "FOUND", "NOT_FOUND")
			if err != nil {
				return nil, err
			}
			if words[0] == "FOUND" && !b.refused[words[1]] {
				jobs = append(jobs, &beanstalkJob{id: words[1], tube: t.name, state: state})
			}
		}
	}
	return jobs, nil
}

// scan finds up to want hidden jobs with ids up to last. Some of them may have been refused before.
func (b *beanstalk) scan(ctx context.Context, last, want int, hidden map[string]bool) ([]*beanstalkJob, error) {
	states := make(map[string]string)
	for state, word := range tubeStates {
		states[word] = state
	}
	var jobs []*beanstalkJob
	for last > 0 && want > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := min(last, idsAtOnce)
		for id := last; id > last-n; id-- {
			b.send("stats-job %d", id)
		}
		last -= n
		for range n {
			words, data, err := b.reply()
			if err != nil {
				return nil, err
			}
			if words[0] != "OK" {
				continue
			}
			stats := statsOf(data)
			j := &beanstalkJob{id: stats["id"], tube: stats["tube"], state: states[stats["state"]]}
			if !hidden[j.tube+" "+j.state] {
				continue
			}
			want--
			if j.priority, err = strconv.ParseInt(stats["pri"], 10, 64); err != nil {
				return nil, fmt.Errorf("stats-job %s: %w", j.id, err)
			}
			if !b.refused[j.id] {
				jobs = append(jobs, j)
			}
		}
	}
	slices.Reverse(jobs)
	// ready jobs in the order in which workers would get them
	slices.SortStableFunc(jobs, func(a, b *beanstalkJob) int {
		if a.tube != b.tube || a.state != b.state {
			return strings.Compare(a.tube+" "+a.state, b.tube+" "+b.state)
		}
		if a.state != Ready || a.priority == b.priority {
			return 0
		}
		return int(a.priority - b.priority)
	})
	return jobs, nil
}

// nextFound returns the found jobs to move next, at least one. The first job of a paused tube is moved alone: it
// creates the queue here, which pauses then. So a window ends before the first job of the next tube that is still to be
// paused.
func (b *beanstalk) nextFound() (jobs []*beanstalkJob, pauses bool) {
	toPause := func(tube string) bool {
		done, paused := b.paused[tube]
		return paused && !done
	}
	if toPause(b.found[0].tube) {
		return b.found[:1], true
	}
	jobs = b.found[:min(len(b.found), int(b.window))]
	if i := slices.IndexFunc(jobs, func(j *beanstalkJob) bool { return toPause(j.tube) }); i > 0 {
		jobs = jobs[:i]
	}
	return jobs, false
}

// moveFound moves the next found jobs. They are not reserved, so that they do not change if the import is interrupted.
// The jobs are sorted by tube. The queue of a paused tube is paused after its first job.
func (b *beanstalk) moveFound(ctx context.Context) (Batch, error) {
	var batch Batch
	for len(b.found) > 0 && batch.empty() {
		jobs, pauses := b.nextFound()
		for _, j := range jobs {
			b.send("peek %s", j.id)
		}
		size := 0
		var there []*beanstalkJob
		for _, j := range jobs {
			words, body, err := b.reply()
			if err != nil {
				return batch, err
			}
			if words[0] == "FOUND" { // otherwise another client has deleted it
				j.body = body
				size += len(body)
				there = append(there, j)
			}
		}
		b.window.adapt(size)
		b.found = b.found[len(jobs):]
		var err error
		if batch, err = b.transfer(ctx, there); err != nil {
			return batch, err
		}
		if tube := jobs[0].tube; pauses && batch.jobs() > 0 {
			if err := b.to.PauseQueue(ctx, tube); err != nil {
				return batch, fmt.Errorf("pause queue %s here: %w", tube, err)
			}
			b.paused[tube] = true
		}
	}
	return batch, nil
}
