package importer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// RedisPort is the port of Redis servers.
const RedisPort = "6379"

// deadDelay keeps a job from running between its submission and its move to the dead set. If the import is killed in
// between, the next one moves it there.
const deadDelay = 180 * 24 * time.Hour

// redis moves the jobs of a Faktory server out of its Redis: those in the queues, scheduled and retrying ones with their
// times, dead ones into our dead set. The queues that are paused are paused here.
//
// Faktory keeps each queue in a list, whose end is the next job, and the rest in sorted sets by time: scheduled, retries,
// dead, and working for what workers have.
type redis struct {
	from   *respConn
	to     *faktorySink
	now    func() time.Time
	window window
	paused bool // the queues of the source that are paused have been paused here
	leased bool // also what workers have
}

// OpenRedis connects to the Redis of a Faktory server and to this broker's Faktory port. With leased, jobs that workers of the
// source have are moved, too; it must not be running then.
func OpenRedis(source, target string, leased bool) (Source, error) {
	from, u, err := dial(source, RedisPort)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	r := &redis{from: newRESPConn(from), now: time.Now, window: firstWindow, leased: leased}
	to, toURL, err := dial(target, FaktoryPort)
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("this broker: %w", err)
	}
	r.to = &faktorySink{newRESPConn(to)}
	if password, set := u.User.Password(); set {
		r.from.array("AUTH", password)
		if _, err := r.from.text(); err != nil {
			r.Close()
			return nil, fmt.Errorf("source: %w", err)
		}
	}
	if err := greet(r.to.conn, toURL, ""); err != nil {
		r.Close()
		return nil, fmt.Errorf("this broker: %w", err)
	}
	return r, nil
}

// Close implements Source.
func (r *redis) Close() {
	_ = r.from.Close() // every command was answered
	if r.to != nil {
		_ = r.to.conn.Close()
	}
}

// Finish implements Source.
func (r *redis) Finish(context.Context) error { return nil }

func (r *redis) queues() ([]string, error) {
	r.from.array("SMEMBERS", "queues")
	names, err := r.from.texts()
	slices.Sort(names)
	return names, err
}

// Count implements Source.
func (r *redis) Count() ([]Count, error) {
	names, err := r.queues()
	if err != nil {
		return nil, err
	}
	var counts []Count
	for _, queue := range names {
		r.from.array("LLEN", queue)
		n, err := r.from.number()
		if err != nil {
			return nil, fmt.Errorf("queue %s: %w", queue, err)
		}
		counts = append(counts, Count{queue, Ready, n})
	}
	for set, state := range setStates {
		r.from.array("ZCARD", set)
		n, err := r.from.number()
		if err != nil {
			return nil, fmt.Errorf("set %s: %w", set, err)
		}
		counts = append(counts, Count{anyQueue, state, n})
	}
	return counts, nil
}

// Move implements Source: it moves a batch of one queue or set.
func (r *redis) Move(context.Context) ([]Count, error) {
	if !r.paused {
		r.from.array("SMEMBERS", "paused")
		names, err := r.from.texts()
		if err == nil {
			err = r.to.pause(names)
		}
		if err != nil {
			return nil, fmt.Errorf("paused queues: %w", err)
		}
		r.paused = true
	}
	names, err := r.queues()
	if err != nil {
		return nil, err
	}
	for _, queue := range names {
		if n, err := r.moveQueue(queue); n > 0 || err != nil {
			return []Count{{queue, Ready, n}}, err
		}
	}
	sets := []string{"scheduled", "retries", "dead"}
	if r.leased {
		sets = append(sets, "working")
	}
	for _, set := range sets {
		if n, err := r.moveSet(set); n > 0 || err != nil {
			return []Count{{anyQueue, setStates[set], n}}, err
		}
	}
	return nil, nil
}

// moveQueue moves the next jobs of a queue.
func (r *redis) moveQueue(queue string) (int, error) {
	r.from.array("LRANGE", queue, strconv.Itoa(-int(r.window)), "-1")
	members, err := r.from.texts()
	if err != nil || len(members) == 0 {
		return 0, err
	}
	slices.Reverse(members) // the oldest first
	var jobs []json.RawMessage
	size := 0
	for _, m := range members {
		jobs = append(jobs, json.RawMessage(m))
		size += len(m)
	}
	r.window.adapt(size)
	if err := r.to.push(jobs); err != nil {
		return 0, err
	}
	for _, m := range members {
		r.from.array("LREM", queue, "-1", m)
	}
	return r.removed(len(members))
}

// moveSet moves the first jobs of a set.
func (r *redis) moveSet(set string) (int, error) {
	r.from.array("ZRANGE", set, "0", strconv.Itoa(int(r.window)-1), "WITHSCORES")
	reply, err := r.from.texts() // member, score, member, …
	if err != nil || len(reply) == 0 {
		return 0, err
	}
	var jobs, jids []json.RawMessage
	var members []string
	size := 0
	for pair := range slices.Chunk(reply, 2) {
		job, jid, err := r.jobOfSet(set, pair[0], pair[1])
		if err != nil {
			return 0, fmt.Errorf("set %s: %w", set, err)
		}
		members, jobs, jids = append(members, pair[0]), append(jobs, job), append(jids, jid)
		size += len(job)
	}
	r.window.adapt(size)
	if err := r.to.push(jobs); err != nil {
		return 0, err
	}
	if set == "dead" {
		if err := r.to.kill(jids); err != nil {
			return 0, err
		}
	}
	for _, m := range members {
		r.from.array("ZREM", set, m)
	}
	return r.removed(len(members))
}

// jobOfSet makes of a member of a set the job that is pushed here.
func (r *redis) jobOfSet(set, member, score string) (job, jid json.RawMessage, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(member), &fields); err != nil {
		return nil, nil, err
	}
	if set == "working" { // a reservation, with the job in it
		inner := fields["job"]
		fields = nil
		if err := json.Unmarshal(inner, &fields); err != nil {
			return nil, nil, fmt.Errorf("reservation: %w", err)
		}
	}
	switch set {
	case "retries", "scheduled":
		unix, err := strconv.ParseFloat(score, 64)
		if err != nil {
			return nil, nil, err
		}
		whole, part := math.Modf(unix)
		fields["at"] = jsonTime(time.Unix(int64(whole), int64(part*1e9)))
	case "dead":
		fields["at"] = jsonTime(r.now().Add(deadDelay))
	default:
		delete(fields, "at")
	}
	if fields["jid"] == nil {
		return nil, nil, errors.New("job without a jid")
	}
	text, err := compact(fields)
	return json.RawMessage(text), fields["jid"], err
}

func jsonTime(t time.Time) json.RawMessage {
	return json.RawMessage(`"` + t.UTC().Format(time.RFC3339Nano) + `"`)
}

// removed reads the replies to n removals. A job that was not there any more has been taken by another worker meanwhile; it
// is here, too.
func (r *redis) removed(n int) (int, error) {
	for done := range n {
		if _, err := r.from.number(); err != nil {
			return done, err
		}
	}
	return n, nil
}
