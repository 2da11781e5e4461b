package importer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"time"

	"broker/migrate/wire"
)

// FaktoryPort is the port of Faktory servers.
const FaktoryPort = "7419"

// beatEvery is the interval at which a Faktory server expects heartbeats from a worker.
const beatEvery = 10 * time.Second

// maxFetched limits a batch. If an import is killed, its fetched jobs return only when their reservations end.
const maxFetched = 32

// faktory moves the jobs in the queues of a Faktory server by fetching them like a worker. The protocol only gives
// access to the queues. The source redis can read all jobs.
type faktory struct {
	selection

	from   *respConn
	to     *faktorySink
	window window
	beatAt time.Time

	resume bool // paused queues of the source may be resumed for the moments in which jobs are fetched
	// queues that are paused at the source and moved nevertheless; true: they have been paused here
	resumed map[string]bool
	paused  map[string]bool // other queues that returned no job although jobs wait in them

	// returned are the jobs that this broker refused, by queue and jid. They go to the end of their queue at the
	// source, because the protocol only returns the first job, and the others must be reachable.
	returned map[string]map[string]bool
}

// importerWID is the importer's id among the source's workers.
const importerWID = "broker-import"

// OpenFaktory connects to a Faktory server and to this broker's Faktory port. With resume, paused queues are resumed at
// the source for the moments in which jobs are fetched.
func OpenFaktory(s Servers, resume bool) (Source, error) {
	from, to, urls, err := s.dialBoth(FaktoryPort)
	if err != nil {
		return nil, err
	}
	f := &faktory{
		from: newRESPConn(from), to: &faktorySink{newRESPConn(to)}, window: firstWindow, beatAt: time.Now(),
		resume:  resume,
		resumed: make(map[string]bool), paused: make(map[string]bool), returned: make(map[string]map[string]bool),
	}
	if err := greet(f.from, urls[0], importerWID); err != nil {
		f.Close()
		return nil, atSource(err)
	}
	if err := greet(f.to.conn, urls[1], ""); err != nil {
		f.Close()
		return nil, atBroker(err)
	}
	return f, nil
}

// greet sends HELLO, as a worker if wid is set. The password comes from the address, else from FAKTORY_PASSWORD.
func greet(c *respConn, address *url.URL, wid string) error {
	hi, err := c.text()
	switch {
	case errors.Is(err, errClosed):
		return fmt.Errorf("%w before it greeted; is this Faktory's port, and does it serve clients?", err)
	case errors.Is(err, wire.ErrFraming):
		return wire.ErrNotFaktory
	case err != nil:
		return err
	}
	fields := map[string]any{}
	if wid != "" {
		fields["wid"], fields["pid"], fields["labels"] = wid, os.Getpid(), []string{"import"}
		fields["hostname"], _ = os.Hostname() // informative
	}
	password, _ := address.User.Password()
	password = cmp.Or(password, address.User.Username(), os.Getenv("FAKTORY_PASSWORD"))
	hello, secret, err := wire.Hello(hi, password, fields)
	if err != nil {
		return err
	}
	c.line(hello)
	_, err = c.text()
	if refusal := serverError(""); secret && errors.As(err, &refusal) {
		err = fmt.Errorf("%w; give the password as tcp://:PASSWORD@HOST:PORT, or in FAKTORY_PASSWORD", err)
	}
	return err
}

// Close implements Source.
func (f *faktory) Close() {
	_ = f.from.Close() // every command was answered
	_ = f.to.conn.Close()
}

// Paused implements Source. The protocol does not show which queues are paused. The importer only knows queues that
// returned no job although jobs wait in them.
func (f *faktory) Paused() ([]string, error) {
	return append(slices.Sorted(maps.Keys(f.paused)), slices.Sorted(maps.Keys(f.resumed))...), nil
}

// Reason implements Source.
func (f *faktory) Reason(queue, state string) string {
	switch {
	case state == Ready && f.paused[queue]:
		return "the queue is paused at the source: --resume-paused moves its jobs"
	case state == Ready:
		return "came while the import ran: import again"
	case state == Leased:
		return f.others("with workers: import again when they are done")
	}
	return f.others("not shown by Faktory's protocol: import from its Redis")
}

// staying says why jobs of a queue and state cannot be moved over the protocol; empty: they can.
func (f *faktory) staying(queue, state string) string {
	if state == Ready {
		return ""
	}
	return f.Reason(queue, state)
}

// Finish implements Source.
func (f *faktory) Finish(context.Context) error { return nil }

// faktoryInfo is the part of INFO that counts jobs.
type faktoryInfo struct {
	Faktory struct {
		Queues map[string]int `json:"queues"`
		Sets   map[string]int `json:"sets"`
	} `json:"faktory"`
}

// setStates maps Faktory's sets to states.
var setStates = map[string]string{"scheduled": Scheduled, "retries": Retrying, "dead": Dead, "working": Leased}

// anyQueue is the queue name in counts over all queues.
const anyQueue = "(all)"

func (f *faktory) info() (i faktoryInfo, err error) {
	f.from.line("INFO")
	text, err := f.from.text()
	if err == nil {
		err = json.Unmarshal([]byte(text), &i)
	}
	return i, err
}

// Count implements Source.
func (f *faktory) Count() ([]Count, error) {
	i, err := f.info()
	if err != nil {
		return nil, err
	}
	var counts []Count
	for queue, n := range i.Faktory.Queues {
		if f.has(queue) {
			counts = append(counts, Count{queue, Ready, n})
		}
	}
	for set, n := range i.Faktory.Sets {
		counts = append(counts, Count{anyQueue, setStates[set], n})
	}
	return counts, nil
}

// Move implements Source: it moves a batch of jobs of one queue.
func (f *faktory) Move(context.Context) (Batch, error) {
	if now := time.Now(); now.Sub(f.beatAt) > beatEvery {
		f.from.line("BEAT", `{"wid":"`+importerWID+`"}`)
		if _, err := f.from.text(); err != nil {
			return Batch{}, err
		}
		f.beatAt = now
	}
	i, err := f.info()
	if err != nil {
		return Batch{}, err
	}
	for _, queue := range slices.Sorted(maps.Keys(i.Faktory.Queues)) {
		waiting := i.Faktory.Queues[queue] - len(f.returned[queue])
		if waiting <= 0 || f.paused[queue] || !f.has(queue) {
			continue
		}
		batch, err := f.moveQueue(queue, min(waiting, int(f.window), maxFetched))
		if err != nil || !batch.empty() {
			return batch, err
		}
	}
	return Batch{}, nil
}

// moveQueue moves the next n jobs of a queue. It does not try more, because FETCH waits at an empty queue.
func (f *faktory) moveQueue(queue string, n int) (Batch, error) {
	if _, resumed := f.resumed[queue]; resumed {
		return f.movePaused(queue, n)
	}
	jobs, err := f.fetch(queue, 1)
	if err != nil {
		return Batch{}, err
	}
	if len(jobs) == 0 {
		i, err := f.info()
		switch {
		case err != nil || i.Faktory.Queues[queue] == 0:
			return Batch{}, err
		case !f.resume: // jobs wait in it, so it must be paused
			f.paused[queue] = true
			return Batch{}, nil
		}
		f.resumed[queue] = false
		return f.movePaused(queue, n)
	}
	more, err := f.fetch(queue, n-1)
	if err != nil {
		return Batch{}, err
	}
	return f.transfer(queue, append(jobs, more...))
}

// movePaused moves the next n jobs of a queue that is paused at the source.
func (f *faktory) movePaused(queue string, n int) (Batch, error) {
	pausedHere := f.resumed[queue]
	if !pausedHere {
		n = 1 // then the queue exists here, and can be paused
	}
	jobs, err := f.fetchPaused(queue, n)
	if err != nil || len(jobs) == 0 {
		return Batch{}, err
	}
	batch, err := f.transfer(queue, jobs)
	if err == nil && !pausedHere && batch.jobs() > 0 {
		err = f.to.pause(queue)
		f.resumed[queue] = true
	}
	return batch, err
}

// transfer submits jobs and then ends them at the source.
func (f *faktory) transfer(queue string, jobs []*faktoryJob) (Batch, error) {
	size := 0
	for _, j := range jobs {
		size += len(j.body)
	}
	f.window.adapt(size)
	refused, err := f.to.push(jobs)
	if err != nil {
		return Batch{}, err
	}
	batch := Batch{Moved: []Count{{queue, Ready, 0}}}
	for i, j := range jobs {
		if reason, no := refused[i]; no {
			known, err := f.giveBack(queue, j)
			if err != nil {
				return batch, err
			}
			if !known {
				batch.Refused = append(batch.Refused, Refused{queue, Ready, j.jid, reason, j.body})
			}
		}
		if err := f.ack(j); err != nil {
			return batch, err
		}
		if _, no := refused[i]; !no {
			batch.Moved[0].Jobs++
		}
	}
	return batch, nil
}

// fetchPaused is fetch for a paused queue. The queue is resumed and paused again by one write, so that it stays paused
// when the importer is killed.
func (f *faktory) fetchPaused(queue string, n int) ([]*faktoryJob, error) {
	f.from.line("QUEUE", "RESUME", queue)
	f.sendFetch(queue, n)
	f.from.line("QUEUE", "PAUSE", queue)
	if _, err := f.from.text(); err != nil {
		return nil, fmt.Errorf("resume queue %s at the source: %w", queue, err)
	}
	jobs, err := f.fetched(n)
	if err != nil {
		return nil, err
	}
	if _, err := f.from.text(); err != nil {
		return nil, fmt.Errorf("pause queue %s at the source: %w", queue, err)
	}
	return jobs, nil
}

// fetch takes up to n jobs of a queue.
func (f *faktory) fetch(queue string, n int) ([]*faktoryJob, error) {
	f.sendFetch(queue, n)
	return f.fetched(n)
}

func (f *faktory) sendFetch(queue string, n int) {
	for range n {
		f.from.line("FETCH", queue)
	}
}

// fetched reads the replies to n FETCH.
func (f *faktory) fetched(n int) ([]*faktoryJob, error) {
	var jobs []*faktoryJob
	for range n {
		text, err := f.from.text()
		if err != nil {
			return nil, err
		}
		if text == "" {
			continue
		}
		j, err := jobOf(json.RawMessage(text))
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// giveBack puts a job at the end of its queue at the source. It reports whether that has happened to the job before.
func (f *faktory) giveBack(queue string, j *faktoryJob) (known bool, err error) {
	line, err := compact(j.body)
	if err != nil {
		return false, err
	}
	f.from.line("PUSH", line)
	if _, err := f.from.text(); err != nil {
		return false, fmt.Errorf("give job %s back: %w", j.jid, err)
	}
	if f.returned[queue] == nil {
		f.returned[queue] = make(map[string]bool)
	}
	known = f.returned[queue][j.jid]
	f.returned[queue][j.jid] = true
	return known, nil
}

// ack ends a job at the source.
func (f *faktory) ack(j *faktoryJob) error {
	line, err := compact(map[string]string{"jid": j.jid})
	if err != nil {
		return err
	}
	f.from.line("ACK", line)
	_, err = f.from.text()
	return err
}
