package importer

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// beanstalkPort is the port of beanstalkd.
const beanstalkPort = "11300"

// normalPriority is the priority of most beanstalkd jobs, where 0 is the most urgent. It becomes priority 0 here.
const normalPriority = 1024

// knownFor is how long a moved job is known here, also after its end. An import that was killed between a submission
// and the deletion at the source finds the job when it is started again within that time, so the job does not run
// twice.
const knownFor = 24 * time.Hour

// longestLease is the longest lease that the API accepts: 100 years. beanstalkd allows 136.
const longestLease = 100 * 365 * 24 * 60 * 60

// Submitter submits jobs to this broker over its HTTP API.
type Submitter interface {
	// Submit submits jobs. It skips jobs whose id or unique key exists already, because an interrupted import has
	// moved them. It returns the errors of refused jobs by index. All other jobs are durable.
	Submit(ctx context.Context, jobs []map[string]any) (refused map[int]string, err error)
	// Kill moves jobs to the dead set.
	Kill(ctx context.Context, ids []string) error
	// PauseQueue pauses a queue. The queue must exist.
	PauseQueue(ctx context.Context, queue string) error
}

// beanstalk moves the jobs of a beanstalkd. It reserves ready jobs in batches. It finds all others by their ids and
// leaves them unchanged at the source until they are here: delayed jobs keep the rest of their delay, buried jobs go to
// the dead set, and jobs of paused tubes to paused queues.
type beanstalk struct {
	*beanstalkConn
	selection

	to      Submitter
	now     func() time.Time
	server  string // identity of the source's process, for the ids of jobs
	window  window
	watch   string            // the watched tube
	found   []*beanstalkJob   // jobs that cannot be reserved, to be moved next
	refused map[string]bool   // ids of jobs that this broker refused
	held    map[string]string // refused jobs that are reserved, with their priorities
	paused  map[string]bool   // paused tubes of the source; true: their queues have been paused here
}

// OpenBeanstalk connects to a beanstalkd.
func OpenBeanstalk(s Servers, to Submitter) (Source, error) {
	conn, _, err := s.dial(s.Source, beanstalkPort)
	if err != nil {
		return nil, atSource(err)
	}
	b := &beanstalk{
		beanstalkConn: newBeanstalkConn(conn), to: to, now: time.Now, window: firstWindow, watch: "default",
		refused: make(map[string]bool), held: make(map[string]string), paused: make(map[string]bool),
	}
	stats, err := b.stats("stats")
	if err != nil {
		b.Close()
		return nil, atSource(err)
	}
	b.server = stats["id"]
	return b, nil
}

// Close implements Source. Reserved jobs that were not deleted return to their tubes.
func (b *beanstalk) Close() { _ = b.Conn.Close() } // every command was answered

// Finish implements Source: it releases the jobs that this broker refused.
func (b *beanstalk) Finish(context.Context) error {
	for id, priority := range b.held {
		b.send("release %s %s 0", id, priority)
	}
	for range b.held {
		if _, _, err := b.reply(); err != nil {
			return err
		}
	}
	clear(b.held)
	return nil
}

// Reason implements Source.
func (b *beanstalk) Reason(_, state string) string {
	if state == Leased {
		return "reserved by workers: import again when they are done"
	}
	return "came while the import ran: import again"
}

// tubeStats is the state of a tube.
type tubeStats struct {
	name   string
	jobs   map[string]int // by state
	paused bool
}

// tubeStates maps states to beanstalkd's names.
var tubeStates = map[string]string{Ready: "ready", Leased: "reserved", Scheduled: "delayed", Dead: "buried"}

// allTubes returns the states of all tubes.
func (b *beanstalk) allTubes() ([]tubeStats, error) {
	names, err := b.tubes()
	if err != nil {
		return nil, err
	}
	var all []tubeStats
	for _, name := range names {
		if !b.has(name) {
			continue
		}
		b.send("stats-tube %s", name)
		words, data, err := b.reply()
		if err != nil {
			return nil, err
		}
		if words[0] == "NOT_FOUND" { // it was the tube's last job
			continue
		}
		stats := statsOf(data)
		t := tubeStats{
			name: name, jobs: make(map[string]int),
			paused: stats["pause-time-left"] != "0" && stats["pause-time-left"] != "",
		}
		for state, word := range tubeStates {
			n, err := strconv.Atoi(stats["current-jobs-"+word])
			if err != nil {
				return nil, fmt.Errorf("stats-tube %s: %w", name, err)
			}
			t.jobs[state] = n
		}
		all = append(all, t)
	}
	return all, nil
}

// Count implements Source.
func (b *beanstalk) Count() ([]Count, error) {
	tubes, err := b.allTubes()
	if err != nil {
		return nil, err
	}
	var counts []Count
	for _, t := range tubes {
		for state, n := range t.jobs {
			counts = append(counts, Count{t.name, state, n})
		}
	}
	return counts, nil
}

// Paused implements Source.
func (b *beanstalk) Paused() ([]string, error) {
	tubes, err := b.allTubes()
	var names []string
	for _, t := range tubes {
		if t.paused {
			names = append(names, t.name)
		}
	}
	return names, err
}

// Move implements Source: it moves a batch of one tube.
func (b *beanstalk) Move(ctx context.Context) (Batch, error) {
	if len(b.found) > 0 {
		return b.moveFound(ctx)
	}
	tubes, err := b.allTubes()
	if err != nil {
		return Batch{}, err
	}
	for _, t := range tubes {
		if t.paused && !b.paused[t.name] {
			b.paused[t.name] = false
		}
		if t.paused || t.jobs[Ready] == 0 {
			continue
		}
		if batch, err := b.moveReady(ctx, t.name); err != nil || !batch.empty() {
			return batch, err
		}
	}
	if b.found, err = b.find(ctx, tubes); err != nil || len(b.found) == 0 {
		return Batch{}, err
	}
	return b.moveFound(ctx)
}

// beanstalkJob is a job of the source.
type beanstalkJob struct {
	id, tube, state string
	priority        int64 // for a ready job of a paused tube
	body            []byte
	stats           map[string]string
}

// moveReady moves the next ready jobs of a tube.
func (b *beanstalk) moveReady(ctx context.Context, tube string) (Batch, error) {
	if b.watch != tube {
		if _, _, err := b.call("watch "+tube, "WATCHING"); err != nil {
			return Batch{}, err
		}
		if _, _, err := b.call("ignore "+b.watch, "WATCHING", "NOT_IGNORED"); err != nil {
			return Batch{}, err
		}
		b.watch = tube
	}
	taken, again, err := b.reserve(tube)
	for err == nil && len(taken) == 0 && again > 0 { // skip refused jobs whose reservation had ended
		taken, again, err = b.reserve(tube)
	}
	if err != nil {
		return Batch{}, err
	}
	batch, err := b.transfer(ctx, taken)
	for _, j := range taken {
		if b.refused[j.id] {
			b.held[j.id] = j.stats["pri"]
		}
	}
	return batch, err
}

// reserve reserves ready jobs of the watched tube. again counts jobs that were refused before.
func (b *beanstalk) reserve(tube string) (taken []*beanstalkJob, again int, err error) {
	n := int(b.window)
	for range n {
		b.send("reserve-with-timeout 0")
	}
	size := 0
	for range n {
		words, body, err := b.reply()
		if err != nil {
			return nil, 0, err
		}
		switch {
		case words[0] == "TIMED_OUT" || words[0] == "DEADLINE_SOON":
		case words[0] != "RESERVED":
			return nil, 0, fmt.Errorf("reserve: the source replied %s", strings.Join(words, " "))
		case b.refused[words[1]]:
			again++
		default:
			taken = append(taken, &beanstalkJob{id: words[1], tube: tube, state: Ready, body: body})
			size += len(body)
		}
	}
	b.window.adapt(size)
	return taken, again, nil
}

// transfer submits jobs and then deletes them at the source.
func (b *beanstalk) transfer(ctx context.Context, taken []*beanstalkJob) (Batch, error) {
	if len(taken) == 0 {
		return Batch{}, nil
	}
	if err := b.readStats(taken); err != nil {
		return Batch{}, err
	}
	var batch Batch
	jobs := make([]map[string]any, len(taken))
	for i, j := range taken {
		jobs[i] = b.submission(j)
	}
	refused, err := b.to.Submit(ctx, jobs)
	if err != nil {
		return batch, atBroker(err)
	}
	var accepted []*beanstalkJob
	var dead []string
	for i, j := range taken {
		if reason, no := refused[i]; no {
			b.refused[j.id] = true
			batch.Refused = append(batch.Refused, Refused{j.tube, j.state, j.id, reason, jobs[i]})
			continue
		}
		accepted = append(accepted, j)
		if j.state == Dead {
			dead = append(dead, jobs[i]["id"].(string))
		}
	}
	if len(dead) > 0 {
		if err := b.to.Kill(ctx, dead); err != nil {
			return batch, atBroker(err)
		}
	}
	return batch, b.remove(accepted, &batch)
}

// readStats reads the states of jobs. The state of a job that no longer exists stays empty; it is submitted with
// defaults.
func (b *beanstalk) readStats(jobs []*beanstalkJob) error {
	for _, j := range jobs {
		b.send("stats-job %s", j.id)
	}
	for _, j := range jobs {
		_, data, err := b.reply()
		if err != nil {
			return err
		}
		j.stats = statsOf(data)
	}
	return nil
}

// remove deletes jobs at the source, and counts them as moved.
func (b *beanstalk) remove(jobs []*beanstalkJob, batch *Batch) error {
	for _, j := range jobs {
		b.send("delete %s", j.id)
	}
	for _, j := range jobs {
		words, _, err := b.reply()
		if err != nil {
			return err
		}
		if words[0] != "DELETED" && words[0] != "NOT_FOUND" { // not found: another worker has finished it
			return fmt.Errorf("delete: the source replied %s", strings.Join(words, " "))
		}
		batch.Moved = append(batch.Moved, Count{j.tube, j.state, 1})
	}
	return nil
}

// submission is a job in the format of the HTTP API.
func (b *beanstalk) submission(j *beanstalkJob) map[string]any {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(j.stats[name], 10, 64) // zero if the job no longer exists
		return n
	}
	id := b.id(j)
	job := map[string]any{
		"queue": j.tube, "id": id, "unique_key": id, "unique_until": "window", "unique_for_s": int(knownFor.Seconds()),
	}
	if j.stats["pri"] != "" {
		job["priority"] = normalPriority - number("pri")
	}
	if ttr := number("ttr"); ttr > 0 {
		job["lease_for_s"] = min(ttr, longestLease)
	}
	switch j.state {
	case Scheduled:
		job["run_at"] = b.now().Add(time.Duration(number("time-left")) * time.Second).Format(time.RFC3339Nano)
	case Dead: // Kill moves it to the dead set later
		job["run_at"] = b.now().Add(deadDelay).Format(time.RFC3339Nano)
	}
	if utf8.Valid(j.body) {
		job["body"] = string(j.body)
	} else {
		job["body_base64"] = base64.StdEncoding.EncodeToString(j.body)
	}
	return job
}

// id is the id of the job here. It is the same each time that this job of this beanstalkd process is submitted.
func (b *beanstalk) id(j *beanstalkJob) string {
	hash := sha256.Sum256(j.body)
	return uuid.NewSHA1(uuid.NameSpaceOID,
		fmt.Appendf(nil, "beanstalkd %s %s %s %x", b.server, j.tube, j.id, hash)).String()
}
