package faktory

import (
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"broker/access"
	"broker/core"
)

// info: INFO.
func (s *session) info(p *pipeline, _ []byte) {
	if !s.allowed(access.Read) {
		return
	}
	s.front.commands.Add(uint64(p.commands)) // INFO counts itself
	p.commands = 0
	s.start(s.front.newReport())
}

// Info returns the answer of INFO, for the HTTP API. Any goroutine may call it.
func (f *Frontend) Info() []byte {
	ask := func(op core.Op) core.Reply { return core.DoOnce(f.broker.Unguarded(), core.Internal, op)[0] }
	t := f.newReport()
	for !t.addPage(ask, 0) {
	}
	return t.finish(ask(&core.ReadStats{}).Stats)
}

// report is an answer to INFO in progress, with its members in the order of the reference server. There may be hundreds
// of thousands of queues, so each step adds one page of queues.
type report struct {
	front    *Frontend
	json     []byte
	after    string // the last queue added
	queues   int
	enqueued int64
	inQueues sets // counts of the namespace, if there is one
	commit   core.Commit
}

// sets holds the sizes of the sorted sets of the reference server.
type sets struct{ scheduled, retries, dead, working int64 }

func (f *Frontend) newReport() *report {
	t := &report{front: f}
	now := f.broker.Now()
	b := append(t.json, '{')
	b = appendInstantMember(b, "now", now)
	b = appendTextMember(b, "server_utc_time", now.Time().Format("15:04:05 UTC"))
	b = append(appendName(b, "faktory"), '{')
	t.json = append(appendName(b, "queues"), '{')
	return t
}

// step implements task.
func (t *report) step(s *session) bool {
	ask := func(op core.Op) core.Reply {
		r := s.ask(op)
		t.commit = max(t.commit, r.Commit)
		return r
	}
	if !t.addPage(ask, s.NextTag()) {
		return false
	}
	stats := ask(&core.ReadStats{Tag: s.NextTag()}).Stats
	s.bulk(t.finish(stats), t.commit)
	return true
}

// addPage adds the next page of queues and reports whether it was the last one. ask runs an operation with this tag.
func (t *report) addPage(ask func(core.Op) core.Reply, tag uint64) (last bool) {
	list := core.ListQueueValues{
		Tag: tag, Prefix: t.front.opts.Namespace, After: t.after, Limit: queuePage, Of: core.QueueReady,
	}
	page := queueValues(ask, list)
	for _, q := range page {
		t.json = appendQuoted(appendComma(t.json), q.Name[len(t.front.opts.Namespace):])
		t.json = strconv.AppendInt(append(t.json, ':'), q.Value, 10)
		t.enqueued += q.Value
	}
	if t.front.opts.Namespace != "" {
		for of, size := range map[core.QueueMeasure]*int64{
			core.QueueScheduled: &t.inQueues.scheduled, core.QueueRetrying: &t.inQueues.retries,
			core.QueueDead: &t.inQueues.dead,
		} {
			list.Of = of
			for _, q := range queueValues(ask, list) {
				*size += q.Value
			}
		}
	}
	if t.queues += len(page); len(page) < queuePage {
		return true
	}
	t.after = page[len(page)-1].Name
	return false
}

// finish adds the members after the queues.
func (t *report) finish(counted *core.Stats) []byte {
	var stats core.Stats
	if counted != nil {
		stats = *counted
	}
	b := append(t.json, '}')
	size := t.sets(&stats)
	b = append(appendName(b, "sets"), '{')
	b = appendIntegerMember(b, "dead", size.dead)
	b = appendIntegerMember(b, "retries", size.retries)
	b = appendIntegerMember(b, "scheduled", size.scheduled)
	b = appendIntegerMember(b, "working", size.working)
	b = append(b, '}')
	of := t.front.counts()
	b = appendTasks(b, size, &stats.Due, &of)
	totals := stats.Totals // of all protocols
	b = appendIntegerMember(b, "total_failures", int64(totals.Failed))
	b = appendIntegerMember(b, "total_processed", int64(totals.Done+totals.Failed))
	b = appendIntegerMember(b, "total_enqueued", t.enqueued)
	b = appendIntegerMember(b, "total_queues", int64(t.queues))
	b = append(b, '}')
	b = append(appendName(b, "server"), '{')
	b = appendTextMember(b, "description", description)
	b = appendTextMember(b, "faktory_version", faktoryVersion)
	b = appendIntegerMember(b, "uptime", int64(t.front.broker.Now().Sub(of.StartedAt)/time.Second))
	b = appendIntegerMember(b, "connections", of.Connections)
	b = appendIntegerMember(b, "command_count", of.Commands)
	b = appendIntegerMember(b, "used_memory_mb", of.MemoryMB)
	return append(b, '}', '}')
}

// sets counts all jobs, or those in the namespace if there is one.
func (t *report) sets(stats *core.Stats) sets {
	size := t.inQueues
	if t.front.opts.Namespace == "" {
		size.scheduled = int64(stats.Jobs[core.Scheduled])
		size.retries = int64(stats.Jobs[core.Retrying])
		size.dead = int64(stats.Jobs[core.Dead])
	}
	size.working = int64(stats.LeasedBy[core.Faktory])
	return size
}

// appendTasks writes the state of the periodic scans of the reference server. The broker needs no scans, so cycles and
// wall_time_sec are 0.
func appendTasks(b []byte, size sets, due *[len(core.States) + 1]uint64, of *counts) []byte {
	b = append(appendName(b, "tasks"), '{')
	b = append(appendName(b, "Busy"), '{')
	b = appendIntegerMember(b, "reaped", int64(due[core.Leased]))
	b = append(appendIntegerMember(b, "size", size.working), '}')
	for _, scan := range []struct {
		name string
		size int64
		due  uint64
	}{
		{"Dead", size.dead, 0},
		{"Retries", size.retries, due[core.Retrying]},
		{"Scheduled", size.scheduled, due[core.Scheduled]},
	} {
		b = append(appendName(b, scan.name), '{')
		b = appendIntegerMember(b, "cycles", 0)
		b = appendIntegerMember(b, "enqueued", int64(scan.due))
		b = appendIntegerMember(b, "size", scan.size)
		b = append(appendIntegerMember(b, "wall_time_sec", 0), '}')
	}
	b = append(appendName(b, "Workers"), '{')
	b = appendIntegerMember(b, "reaped", of.Reaped)
	return append(appendIntegerMember(b, "size", of.Workers), '}', '}')
}

// memoryMB is the resident memory of the process.
func memoryMB() int64 {
	if bytes, ok := residentBytes(); ok {
		return bytes >> 20
	}
	// Not on Linux: the memory that the Go runtime holds.
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return int64((sample[0].Value.Uint64() - sample[1].Value.Uint64()) >> 20)
}

// residentBytes reads the second number of statm, in pages.
func residentBytes() (int64, bool) {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}

// Health is the part of INFO that the reference server publishes over HTTP without a password. Its cost does not depend
// on the number of queues. Any goroutine may call it.
func (f *Frontend) Health() []byte {
	b := append([]byte(nil), '{')
	b = appendInstantMember(b, "now", f.broker.Now())
	b = append(appendName(b, "server"), '{')
	b = appendTextMember(b, "description", description)
	b = appendTextMember(b, "faktory_version", faktoryVersion)
	b = appendIntegerMember(b, "connections", f.connections.Load())
	b = appendIntegerMember(b, "command_count", int64(f.commands.Load()))
	return append(b, "}}\n"...)
}

// bytes implements task.
func (t *report) bytes() int { return len(t.json) }
