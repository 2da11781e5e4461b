package importer

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// BeanstalkPort is the port of beanstalkd.
const BeanstalkPort = "11300"

// normalPriority is the priority of most beanstalkd jobs, where 0 is the most urgent. It becomes our 0.
const normalPriority = 1024

// Submitter submits jobs to this broker over its HTTP API.
type Submitter interface {
	// Submit submits jobs. Those whose id is known are left out: they came with an import that was interrupted.
	Submit(ctx context.Context, jobs []map[string]any) error
	// Kill moves jobs to the dead set.
	Kill(ctx context.Context, ids []string) error
}

// beanstalk moves the jobs of a beanstalkd: ready ones reserved in batches; delayed ones with what is left of their delay;
// buried ones into our dead set.
type beanstalk struct {
	net.Conn

	r      *bufio.Reader
	w      *bufio.Writer
	to     Submitter
	now    func() time.Time
	server string // identity of the source's process, for the ids of jobs
	window window
	watch  string // the tube that is watched
}

// OpenBeanstalk connects to a beanstalkd.
func OpenBeanstalk(source string, to Submitter) (Source, error) {
	conn, _, err := dial(source, BeanstalkPort)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	b := &beanstalk{Conn: conn, r: bufio.NewReader(conn), w: bufio.NewWriter(conn), to: to, now: time.Now, window: firstWindow, watch: "default"}
	stats, err := b.stats("stats")
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("source: %w", err)
	}
	b.server = stats["id"]
	return b, nil
}

// Close implements Source. Jobs that are reserved and not deleted go back to their tubes.
func (b *beanstalk) Close() { _ = b.Conn.Close() } // every command was answered

// Finish implements Source.
func (b *beanstalk) Finish(context.Context) error { return nil }

// send queues a command.
func (b *beanstalk) send(format string, args ...any) {
	_, _ = fmt.Fprintf(b.w, format+"\r\n", args...) // Flush returns the error
}

// reply reads the words of a reply, and the data if the word is OK, FOUND or RESERVED.
func (b *beanstalk) reply() (words []string, data []byte, err error) {
	if err := b.w.Flush(); err != nil {
		return nil, nil, err
	}
	line, err := b.r.ReadString('\n')
	if err != nil {
		return nil, nil, lost(err)
	}
	words = strings.Fields(line)
	if len(words) == 0 {
		return nil, nil, errors.New("the source does not speak beanstalkd's protocol")
	}
	switch words[0] {
	case "OK", "FOUND", "RESERVED":
	default:
		return words, nil, nil
	}
	size, err := strconv.Atoi(words[len(words)-1])
	if err != nil || size < 0 || size > maxBulk {
		return nil, nil, fmt.Errorf("unexpected reply %q", line)
	}
	data = make([]byte, size+2)
	if _, err := io.ReadFull(b.r, data); err != nil {
		return nil, nil, lost(err)
	}
	return words, data[:size], nil
}

// call sends a command and expects one of these replies.
func (b *beanstalk) call(command string, expect ...string) (words []string, data []byte, err error) {
	b.send("%s", command)
	words, data, err = b.reply()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", command, err)
	}
	for _, e := range expect {
		if words[0] == e {
			return words, data, nil
		}
	}
	return nil, nil, fmt.Errorf("%s: the source replied %s", command, strings.Join(words, " "))
}

// stats calls a command whose reply is a list of names and values.
func (b *beanstalk) stats(command string) (map[string]string, error) {
	_, data, err := b.call(command, "OK")
	return statsOf(data), err
}

func statsOf(data []byte) map[string]string {
	values := make(map[string]string)
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			values[name] = strings.Trim(value, `"`)
		}
	}
	return values
}

func (b *beanstalk) tubes() ([]string, error) {
	_, data, err := b.call("list-tubes", "OK")
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(string(data)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
			names = append(names, strings.Trim(name, `"`))
		}
	}
	return names, nil
}

// Count implements Source.
func (b *beanstalk) Count() ([]Count, error) {
	tubes, err := b.tubes()
	if err != nil {
		return nil, err
	}
	var counts []Count
	for _, tube := range tubes {
		b.send("stats-tube %s", tube)
		words, data, err := b.reply()
		if err != nil {
			return nil, err
		}
		if words[0] == "NOT_FOUND" { // it was the tube's last job
			continue
		}
		stats := statsOf(data)
		for name, state := range map[string]string{"ready": Ready, "reserved": Leased, "delayed": Scheduled, "buried": Dead} {
			n, err := strconv.Atoi(stats["current-jobs-"+name])
			if err != nil {
				return nil, fmt.Errorf("stats-tube %s: %w", tube, err)
			}
			counts = append(counts, Count{tube, state, n})
		}
	}
	return counts, nil
}

// Move implements Source: it moves a batch of one tube, or a single delayed or buried job.
func (b *beanstalk) Move(ctx context.Context) ([]Count, error) {
	tubes, err := b.tubes()
	if err != nil {
		return nil, err
	}
	for _, tube := range tubes {
		if n, err := b.moveReady(ctx, tube); n > 0 || err != nil {
			return []Count{{tube, Ready, n}}, err
		}
		if _, _, err := b.call("use "+tube, "USING"); err != nil {
			return nil, err
		}
		for _, state := range []string{Scheduled, Dead} {
			if n, err := b.movePeeked(ctx, tube, state); n > 0 || err != nil {
				return []Count{{tube, state, n}}, err
			}
		}
	}
	return nil, nil
}

// beanstalkJob is a job of the source.
type beanstalkJob struct {
	id    string
	body  []byte
	stats map[string]string
}

// moveReady moves the next ready jobs of a tube.
func (b *beanstalk) moveReady(ctx context.Context, tube string) (int, error) {
	if b.watch != tube {
		if _, _, err := b.call("watch "+tube, "WATCHING"); err != nil {
			return 0, err
		}
		if _, _, err := b.call("ignore "+b.watch, "WATCHING", "NOT_IGNORED"); err != nil {
			return 0, err
		}
		b.watch = tube
	}
	for range b.window {
		b.send("reserve-with-timeout 0")
	}
	var taken []*beanstalkJob
	size := 0
	for range b.window {
		words, body, err := b.reply()
		if err != nil {
			return 0, err
		}
		switch words[0] {
		case "RESERVED":
			taken = append(taken, &beanstalkJob{id: words[1], body: body})
			size += len(body)
		case "TIMED_OUT", "DEADLINE_SOON":
		default:
			return 0, fmt.Errorf("reserve: the source replied %s", strings.Join(words, " "))
		}
	}
	b.window.adapt(size)
	return b.transfer(ctx, tube, Ready, taken)
}

// movePeeked moves the next delayed or buried job of the tube in use. It is not reserved, so that it keeps its delay, or stays
// buried, if the import is interrupted.
func (b *beanstalk) movePeeked(ctx context.Context, tube, state string) (int, error) {
	command := map[string]string{Scheduled: "peek-delayed", Dead: "peek-buried"}[state]
	words, body, err := b.call(command, "FOUND", "NOT_FOUND")
	if err != nil || words[0] == "NOT_FOUND" {
		return 0, err
	}
	return b.transfer(ctx, tube, state, []*beanstalkJob{{id: words[1], body: body}})
}

// transfer submits jobs and then deletes them at the source.
func (b *beanstalk) transfer(ctx context.Context, tube, state string, taken []*beanstalkJob) (int, error) {
	if len(taken) == 0 {
		return 0, nil
	}
	for _, j := range taken {
		b.send("stats-job %s", j.id)
	}
	jobs, ids := make([]map[string]any, 0, len(taken)), make([]string, 0, len(taken))
	for _, j := range taken {
		_, data, err := b.reply()
		if err != nil {
			return 0, err
		}
		j.stats = statsOf(data)
		job := b.submission(tube, state, j)
		jobs, ids = append(jobs, job), append(ids, job["id"].(string)) //nolint:forcetypeassert // submission sets it
	}
	if err := b.to.Submit(ctx, jobs); err != nil {
		return 0, fmt.Errorf("this broker: %w", err)
	}
	if state == Dead {
		if err := b.to.Kill(ctx, ids); err != nil {
			return 0, fmt.Errorf("this broker: %w", err)
		}
	}
	for _, j := range taken {
		b.send("delete %s", j.id)
	}
	for done := range taken {
		words, _, err := b.reply()
		if err != nil {
			return done, err
		}
		if words[0] != "DELETED" && words[0] != "NOT_FOUND" { // not found: another worker took it meanwhile
			return done, fmt.Errorf("delete: the source replied %s", strings.Join(words, " "))
		}
	}
	return len(taken), nil
}

// submission is a job as the HTTP API takes it.
func (b *beanstalk) submission(tube, state string, j *beanstalkJob) map[string]any {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(j.stats[name], 10, 64) // zero if the job is gone: it is submitted with defaults
		return n
	}
	job := map[string]any{"queue": tube, "id": b.id(tube, j)}
	if j.stats["pri"] != "" {
		job["priority"] = normalPriority - number("pri")
	}
	if ttr := number("ttr"); ttr > 0 {
		job["lease_for_s"] = ttr
	}
	switch state {
	case Scheduled:
		job["run_at"] = b.now().Add(time.Duration(number("time-left")) * time.Second).Format(time.RFC3339Nano)
	case Dead: // until Kill has moved it to the dead set
		job["run_at"] = b.now().Add(deadDelay).Format(time.RFC3339Nano)
	}
	if utf8.Valid(j.body) {
		job["body"] = string(j.body)
	} else {
		job["body_base64"] = base64.StdEncoding.EncodeToString(j.body)
	}
	return job
}

// id is the same each time that this job of this process of beanstalkd is submitted.
func (b *beanstalk) id(tube string, j *beanstalkJob) string {
	hash := sha256.Sum256(j.body)
	return uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "beanstalkd %s %s %s %x", b.server, tube, j.id, hash)).String()
}
