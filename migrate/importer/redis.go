package importer

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"broker/migrate/wire"
)

// redisPort is the port of Redis servers.
const redisPort = "6379"

// deadDelay delays a dead job, so that it does not run between its submission and its move to the dead set. If the
// import is killed in between, the next import moves it there.
const deadDelay = 180 * 24 * time.Hour

// redis moves the jobs of a Faktory server from its Redis: queued jobs, scheduled and retrying jobs with their times,
// and dead jobs to the dead set here. It also pauses the paused queues here.
//
// Faktory keeps each queue in a list; the last element is the next job. All other jobs are in sorted sets by time:
// scheduled, retries, dead, and working for running jobs. Up to 1.9, the list has the name of the queue. From 1.10 on,
// its name starts with q:. A store may have both, because 1.10 does not rename old lists.
type redis struct {
	selection

	from   *respConn
	to     *faktorySink
	now    func() time.Time
	window window
	paused map[string]bool // paused queues of the source; true: they have been paused here
	leased bool            // also move running jobs

	refused map[string]bool // members of lists and sets that this broker refused
	skip    map[string]int  // by key: refused members before the next jobs
}

// queuePrefix is the prefix of list names since Faktory 1.10.
const queuePrefix = "q:"

// OpenRedis connects to the Redis of a Faktory server and to this broker's Faktory port. With leased, jobs that workers
// of the source are running move too. The source must not be running then.
func OpenRedis(s Servers, leased bool) (Source, error) {
	from, u, err := s.dial(s.Source, redisPort)
	if err != nil {
		return nil, atSource(err)
	}
	r := &redis{
		from: newRESPConn(from), now: time.Now, window: firstWindow, leased: leased, refused: make(map[string]bool),
		skip: make(map[string]int), paused: make(map[string]bool),
	}
	to, toURL, err := s.dialBroker(FaktoryPort)
	if err != nil {
		r.Close()
		return nil, err
	}
	r.to = &faktorySink{newRESPConn(to)}
	if password, set := u.User.Password(); set {
		r.from.array("AUTH", password)
		if _, err := r.from.text(); err != nil {
			r.Close()
			return nil, atSource(err)
		}
	}
	if err := greet(r.to.conn, toURL, ""); err != nil {
		r.Close()
		return nil, atBroker(err)
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

// queueList is a list of jobs.
type queueList struct{ queue, key string }

// lists finds the lists of jobs; for each queue the older list first. It includes lists with the prefix even if their
// queue is not registered.
func (r *redis) lists() ([]queueList, error) {
	r.from.array("SMEMBERS", "queues")
	names, err := r.from.texts()
	if err != nil {
		return nil, err
	}
	var lists []queueList
	for _, name := range names {
		r.from.array("TYPE", name) // a queue of 1.10 may have the name of another key
		kind, err := r.from.text()
		if err != nil {
			return nil, err
		}
		if kind == "list" && r.has(name) {
			lists = append(lists, queueList{name, name})
		}
	}
	keys, err := r.scan(queuePrefix + "*")
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if name := strings.TrimPrefix(key, queuePrefix); r.has(name) {
			lists = append(lists, queueList{name, key})
		}
	}
	slices.SortStableFunc(lists, func(a, b queueList) int { return strings.Compare(a.queue, b.queue) })
	return lists, nil
}

// scan finds the keys of a pattern.
func (r *redis) scan(pattern string) ([]string, error) {
	found := make(map[string]bool) // SCAN may return a key twice
	for cursor := "0"; ; {
		r.from.array("SCAN", cursor, "MATCH", pattern, "COUNT", "1000")
		pair, err := r.from.items()
		if err != nil {
			return nil, err
		}
		if len(pair) != 2 {
			return nil, fmt.Errorf("SCAN returned %d values in place of 2", len(pair))
		}
		keys, _ := wire.RESPItems(pair[1])
		for _, key := range textsOf(keys) {
			found[key] = true
		}
		cursor = string(wire.RESPText(pair[0]))
		if cursor == "0" {
			return slices.Sorted(maps.Keys(found)), nil
		}
	}
}

// Count implements Source.
func (r *redis) Count() ([]Count, error) {
	lists, err := r.lists()
	if err != nil {
		return nil, err
	}
	var counts []Count
	for _, l := range lists {
		r.from.array("LLEN", l.key)
		n, err := r.from.number()
		if err != nil {
			return nil, fmt.Errorf("queue %s: %w", l.queue, err)
		}
		counts = append(counts, Count{l.queue, Ready, n})
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

// Paused implements Source.
func (r *redis) Paused() ([]string, error) {
	r.from.array("SMEMBERS", "paused")
	names, err := r.from.texts()
	return slices.DeleteFunc(names, func(name string) bool { return !r.has(name) }), err
}

// Reason implements Source.
func (r *redis) Reason(queue, state string) string {
	switch {
	case state == Leased:
		return r.others("with workers: import again when they are done, or with --leased when Faktory has stopped")
	case queue == anyQueue:
		return r.others("came while the import ran: import again")
	}
	return "came while the import ran: import again"
}

// Move implements Source: it moves a batch of one queue or set.
func (r *redis) Move(context.Context) (Batch, error) {
	names, err := r.Paused()
	if err != nil {
		return Batch{}, err
	}
	for _, name := range names {
		if !r.paused[name] {
			r.paused[name] = false
		}
	}
	lists, err := r.lists()
	if err != nil {
		return Batch{}, err
	}
	for _, l := range lists {
		batch, err := r.moveQueue(l)
		if done, paused := r.paused[l.queue]; err == nil && paused && !done && batch.jobs() > 0 {
			err = r.to.pause(l.queue) // now it exists
			r.paused[l.queue] = true
		}
		if err != nil || !batch.empty() {
			return batch, err
		}
	}
	sets := []string{"scheduled", "retries", "dead"}
	if r.leased {
		sets = append(sets, "working")
	}
	for _, set := range sets {
		if batch, err := r.moveSet(set); err != nil || !batch.empty() {
			return batch, err
		}
	}
	clear(r.skip)                        // the next pass tries all of them
	return Batch{}, r.to.pause(names...) // also queues that only have scheduled jobs
}

// moveQueue moves the next jobs of a queue. Refused jobs stay at the end of the list.
func (r *redis) moveQueue(l queueList) (Batch, error) {
	for {
		skip, n := r.skip[l.key], int(r.window)
		if done, paused := r.paused[l.queue]; paused && !done {
			n = 1 // then the queue exists here, and can be paused
		}
		r.from.array("LRANGE", l.key, strconv.Itoa(-n-skip), strconv.Itoa(-1-skip))
		members, err := r.from.texts()
		if err != nil || len(members) == 0 {
			return Batch{}, err
		}
		slices.Reverse(members) // the oldest first
		var jobs []*faktoryJob
		for _, m := range members {
			jobs = append(jobs, member(m, json.RawMessage(m), nil))
		}
		batch, err := r.transfer(l.key, Count{l.queue, Ready, 0}, jobs,
			func(m string) { r.from.array("LREM", l.key, "-1", m) })
		if err != nil || !batch.empty() {
			return batch, err
		}
	}
}

// moveSet moves the first jobs of a set. Refused jobs stay at its beginning.
func (r *redis) moveSet(set string) (Batch, error) {
	for {
		skip := r.skip[set]
		r.from.array("ZRANGE", set, strconv.Itoa(skip), strconv.Itoa(skip+int(r.window)-1), "WITHSCORES")
		reply, err := r.from.texts() // member, score, member, …
		if err != nil || len(reply) == 0 {
			return Batch{}, err
		}
		var jobs []*faktoryJob
		for pair := range slices.Chunk(reply, 2) {
			body, err := r.jobOfSet(set, pair[0], pair[1])
			jobs = append(jobs, member(pair[0], body, err))
		}
		batch, err := r.transfer(set, Count{anyQueue, setStates[set], 0}, jobs,
			func(m string) { r.from.array("ZREM", set, m) })
		if err != nil || !batch.empty() {
			return batch, err
		}
	}
}

// transfer submits jobs of a list or set, and removes the accepted jobs from it. count names the queue and the state.
func (r *redis) transfer(
	key string, count Count, jobs []*faktoryJob, remove func(member string),
) (batch Batch, err error) {
	refuse := func(j *faktoryJob, reason string) {
		r.refused[j.member] = true
		r.skip[key]++
		batch.Refused = append(batch.Refused, Refused{count.Queue, count.State, j.jid, reason, j.body})
	}
	size := 0
	var fresh []*faktoryJob
	for _, j := range jobs {
		size += len(j.body)
		switch {
		case r.refused[j.member], !r.has(j.queue):
			r.skip[key]++
		case j.broken != "":
			refuse(j, j.broken)
		default:
			fresh = append(fresh, j)
		}
	}
	r.window.adapt(size)
	refused, err := r.to.push(fresh)
	if err != nil {
		return batch, err
	}
	var accepted []*faktoryJob
	var jids []string
	for i, j := range fresh {
		if reason, no := refused[i]; no {
			refuse(j, reason)
			continue
		}
		accepted, jids = append(accepted, j), append(jids, j.jid)
	}
	if key == "dead" && len(jids) > 0 {
		if err := r.to.kill(jids); err != nil {
			return batch, err
		}
	}
	for _, j := range accepted {
		remove(j.member)
	}
	for range accepted {
		// If a job is no longer there, another worker has taken it. The job then exists here too.
		if _, err := r.from.number(); err != nil {
			return batch, err
		}
		count.Jobs++
	}
	if count.Jobs > 0 {
		batch.Moved = []Count{count}
	}
	return batch, nil
}

// member makes a job from a member of a list or set. With an err, the member is not a job and is refused.
func member(text string, body json.RawMessage, err error) *faktoryJob {
	var j *faktoryJob
	if err == nil {
		j, err = jobOf(body)
	}
	if err != nil { // without a queue: a selection does not include it
		quoted, _ := json.Marshal(text) // a string always has a JSON form
		j = &faktoryJob{body: quoted, broken: err.Error()}
	}
	j.member = text
	return j
}

// jobOfSet converts a member of a set to the job to push here.
func (r *redis) jobOfSet(set, member, score string) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(member), &fields); err != nil {
		return nil, err
	}
	if set == "working" { // a reservation, with the job in it
		inner := fields["job"]
		fields = nil
		if err := json.Unmarshal(inner, &fields); err != nil {
			return nil, fmt.Errorf("reservation: %w", err)
		}
	}
	switch set {
	case "retries", "scheduled":
		unix, err := strconv.ParseFloat(score, 64)
		if err != nil {
			return nil, err
		}
		whole, part := math.Modf(unix)
		fields["at"] = jsonTime(time.Unix(int64(whole), int64(part*1e9)))
	case "dead":
		fields["at"] = jsonTime(r.now().Add(deadDelay))
	default:
		delete(fields, "at")
	}
	text, err := compact(fields)
	return json.RawMessage(text), err
}

func jsonTime(t time.Time) json.RawMessage {
	return json.RawMessage(`"` + t.UTC().Format(time.RFC3339Nano) + `"`)
}
