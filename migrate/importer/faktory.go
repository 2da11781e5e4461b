package importer

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// FaktoryPort is the port of Faktory servers.
const FaktoryPort = "7419"

// beatEvery is how often a Faktory server expects a heartbeat from a worker.
const beatEvery = 10 * time.Second

// maxFetched bounds a batch. Jobs that an import has fetched when it is killed come back only when their reservation ends.
const maxFetched = 32

// faktory moves the jobs in the queues of a Faktory server, as a worker takes them. The protocol gives access to the queues
// only; the source redis has all jobs.
type faktory struct {
	from   *respConn
	to     *faktorySink
	window window
	beatAt time.Time
}

// importerWID names the importer among the source's workers.
const importerWID = "broker-import"

// OpenFaktory connects to a Faktory server and to this broker's Faktory port.
func OpenFaktory(source, target string) (Source, error) {
	from, to, urls, err := dialBoth(source, target, FaktoryPort)
	if err != nil {
		return nil, err
	}
	f := &faktory{from: newRESPConn(from), to: &faktorySink{newRESPConn(to)}, window: firstWindow, beatAt: time.Now()}
	if err := greet(f.from, urls[0], importerWID); err != nil {
		f.Close()
		return nil, fmt.Errorf("source: %w", err)
	}
	if err := greet(f.to.conn, urls[1], ""); err != nil {
		f.Close()
		return nil, fmt.Errorf("this broker: %w", err)
	}
	return f, nil
}

// greet sends HELLO, as a worker if wid is set. The password is that of the address, else FAKTORY_PASSWORD.
func greet(c *respConn, address *url.URL, wid string) error {
	hi, err := c.text()
	if err != nil {
		return err
	}
	var asked struct {
		V int    `json:"v"`
		I int    `json:"i"`
		S string `json:"s"`
	}
	text, isHi := strings.CutPrefix(hi, "HI ")
	if !isHi || json.Unmarshal([]byte(text), &asked) != nil {
		return errors.New("the server does not speak Faktory")
	}
	hello := map[string]any{"v": 2}
	if wid != "" {
		hello["wid"], hello["pid"], hello["labels"] = wid, os.Getpid(), []string{"import"}
		hello["hostname"], _ = os.Hostname() // informative
	}
	if asked.S != "" {
		password, _ := address.User.Password()
		password = cmp.Or(password, address.User.Username(), os.Getenv("FAKTORY_PASSWORD"))
		sum := sha256.Sum256([]byte(password + asked.S))
		for range asked.I - 1 {
			sum = sha256.Sum256(sum[:])
		}
		hello["pwdhash"] = hex.EncodeToString(sum[:])
	}
	text2, err := json.Marshal(hello)
	if err != nil {
		return err
	}
	c.line("HELLO", string(text2))
	_, err = c.text()
	return err
}

// Close implements Source.
func (f *faktory) Close() {
	_ = f.from.Close() // every command was answered
	_ = f.to.conn.Close()
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

// setStates are our words for Faktory's sets.
var setStates = map[string]string{"scheduled": Scheduled, "retries": Retrying, "dead": Dead, "working": Leased}

// anyQueue stands for the queue in counts of jobs of all queues.
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
		counts = append(counts, Count{queue, Ready, n})
	}
	for set, n := range i.Faktory.Sets {
		counts = append(counts, Count{anyQueue, setStates[set], n})
	}
	return counts, nil
}

// Move implements Source: it moves a batch of jobs of one queue.
func (f *faktory) Move(context.Context) ([]Count, error) {
	if now := time.Now(); now.Sub(f.beatAt) > beatEvery {
		f.from.line("BEAT", `{"wid":"`+importerWID+`"}`)
		if _, err := f.from.text(); err != nil {
			return nil, err
		}
		f.beatAt = now
	}
	i, err := f.info()
	if err != nil {
		return nil, err
	}
	for _, queue := range slices.Sorted(maps.Keys(i.Faktory.Queues)) {
		waiting := i.Faktory.Queues[queue]
		if waiting == 0 {
			continue
		}
		moved, err := f.moveQueue(queue, min(waiting, int(f.window), maxFetched))
		if err != nil || moved > 0 {
			return []Count{{queue, Ready, moved}}, err
		}
	}
	return nil, nil
}

// moveQueue moves the next n jobs of a queue: no more, since FETCH waits at an empty queue.
func (f *faktory) moveQueue(queue string, n int) (int, error) {
	for range n {
		f.from.line("FETCH", queue)
	}
	var jobs []json.RawMessage
	size := 0
	for range n {
		text, err := f.from.text()
		if err != nil {
			return 0, err
		}
		if text != "" {
			jobs = append(jobs, json.RawMessage(text))
			size += len(text)
		}
	}
	f.window.adapt(size)
	if err := f.to.push(jobs); err != nil {
		return 0, err
	}
	for _, job := range jobs {
		jid, err := jidOf(job)
		if err != nil {
			return 0, err
		}
		f.from.line("ACK", `{"jid":`+string(jid)+`}`)
	}
	for moved := range jobs {
		if _, err := f.from.text(); err != nil {
			return moved, err
		}
	}
	return len(jobs), nil
}

// jidOf is the jid of a job, as JSON.
func jidOf(job json.RawMessage) (json.RawMessage, error) {
	var j struct {
		JID json.RawMessage `json:"jid"`
	}
	if err := json.Unmarshal(job, &j); err != nil {
		return nil, fmt.Errorf("job of the source: %w", err)
	}
	return j.JID, nil
}

// faktorySink is this broker's Faktory port.
type faktorySink struct{ conn *respConn }

// push submits jobs. All of them are durable when it returns no error.
func (s *faktorySink) push(jobs []json.RawMessage) error {
	if len(jobs) == 0 {
		return nil
	}
	line, err := compact(jobs)
	if err != nil {
		return err
	}
	s.conn.line("PUSHB", line)
	text, err := s.conn.text()
	if err != nil {
		return fmt.Errorf("this broker: %w", err)
	}
	var refused map[string]string
	if err := json.Unmarshal([]byte(text), &refused); err != nil {
		return fmt.Errorf("this broker: %w", err)
	}
	for _, jid := range slices.Sorted(maps.Keys(refused)) {
		return fmt.Errorf("this broker refused job %s: %s", jid, refused[jid])
	}
	return nil
}

// kill moves scheduled and retrying jobs to the dead set.
func (s *faktorySink) kill(jids []json.RawMessage) error {
	for _, set := range []string{"scheduled", "retries"} {
		line, err := compact(map[string]any{"cmd": "kill", "target": set, "filter": map[string]any{"jids": jids}})
		if err != nil {
			return err
		}
		s.conn.line("MUTATE", line)
		if _, err := s.conn.text(); err != nil {
			return fmt.Errorf("this broker: %w", err)
		}
	}
	return nil
}

// pause pauses queues.
func (s *faktorySink) pause(queues []string) error {
	if len(queues) == 0 {
		return nil
	}
	s.conn.line(append([]string{"QUEUE", "PAUSE"}, queues...)...)
	_, err := s.conn.text()
	return err
}

// compact is JSON on one line, with the bytes of strings as they are.
func compact(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}
