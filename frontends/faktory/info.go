package faktory

import (
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"broker/core"
	"broker/frontends/access"
)

// info: INFO.
func (s *session) info(p *pipeline, _ []byte) {
	if !s.allowed(access.Read) {
		return
	}
	s.f.commands.Add(uint64(p.commands)) // INFO counts itself
	p.commands = 0
	p.json = s.f.appendInfo(p.json[:0], s.ask(&core.ReadStats{Tag: s.nextTag()}).Stats, s.queueRows())
	s.bulk(p.json, 0)
}

// Info returns what INFO answers, for the HTTP API. Any goroutine.
func (f *Frontend) Info() []byte {
	queues := f.listQueues(func(op *core.ListQueues) []core.QueueInfo {
		return core.DoOnce(f.b, core.Internal, op)[0].Queues
	})
	return f.appendInfo(nil, core.DoOnce(f.b, core.Internal, &core.ReadStats{})[0].Stats, queues)
}

// sets are the sizes of the reference's sorted sets.
type sets struct{ scheduled, retries, dead, working int }

// appendInfo writes the answer of INFO, with its members in the reference's order.
func (f *Frontend) appendInfo(b []byte, counted *core.Stats, queues []core.QueueInfo) []byte {
	var stats core.Stats
	if counted != nil {
		stats = *counted
	}
	now := f.b.Now()
	b = append(b, '{')
	b = appendInstantMember(b, "now", now)
	b = appendTextMember(b, "server_utc_time", now.Time().Format("15:04:05 UTC"))
	b = append(appendName(b, "faktory"), '{')
	b = append(appendName(b, "queues"), '{')
	enqueued := 0
	for i := range queues {
		q := &queues[i]
		b = appendQuoted(appendComma(b), q.Name[len(f.o.Namespace):])
		b = strconv.AppendInt(append(b, ':'), int64(q.Ready()), 10)
		enqueued += q.Ready()
	}
	b = append(b, '}')
	size := f.sets(&stats, queues)
	b = append(appendName(b, "sets"), '{')
	b = appendIntegerMember(b, "dead", int64(size.dead))
	b = appendIntegerMember(b, "retries", int64(size.retries))
	b = appendIntegerMember(b, "scheduled", int64(size.scheduled))
	b = appendIntegerMember(b, "working", int64(size.working))
	b = append(b, '}')
	b = f.appendTasks(b, size, &stats.Due)
	totals := stats.Totals // of all jobs and workers, whatever their protocol
	b = appendIntegerMember(b, "total_failures", int64(totals.Failed))
	b = appendIntegerMember(b, "total_processed", int64(totals.Done+totals.Failed))
	b = appendIntegerMember(b, "total_enqueued", int64(enqueued))
	b = appendIntegerMember(b, "total_queues", int64(len(queues)))
	b = append(b, '}')
	b = append(appendName(b, "server"), '{')
	b = appendTextMember(b, "description", f.o.Description)
	b = appendTextMember(b, "faktory_version", Version)
	b = appendIntegerMember(b, "uptime", int64(now.Sub(f.startedAt)/time.Second))
	b = appendIntegerMember(b, "connections", f.connections.Load())
	b = appendIntegerMember(b, "command_count", int64(f.commands.Load()))
	b = appendIntegerMember(b, "used_memory_mb", memoryMB())
	return append(b, '}', '}')
}

// sets counts all jobs, or those in the namespace if there is one.
func (f *Frontend) sets(stats *core.Stats, queues []core.QueueInfo) sets {
	size := sets{
		scheduled: stats.Jobs[core.Scheduled], retries: stats.Jobs[core.Retrying], dead: stats.Jobs[core.Dead],
		working: stats.LeasedBy[core.Faktory],
	}
	if f.o.Namespace == "" {
		return size
	}
	size.scheduled, size.retries, size.dead = 0, 0, 0
	for i := range queues {
		size.scheduled += queues[i].Scheduled
		size.retries += queues[i].Retrying
		size.dead += queues[i].Dead
	}
	return size
}

// appendTasks writes the state of the reference's periodic scans. The broker needs no scans, so cycles and wall_time_sec
// are 0.
func (f *Frontend) appendTasks(b []byte, size sets, due *[len(core.States) + 1]uint64) []byte {
	workers, reaped := f.workers.counts()
	b = append(appendName(b, "tasks"), '{')
	b = append(appendName(b, "Busy"), '{')
	b = appendIntegerMember(b, "reaped", int64(due[core.Leased]))
	b = append(appendIntegerMember(b, "size", int64(size.working)), '}')
	for _, scan := range []struct {
		name string
		size int
		due  uint64
	}{
		{"Dead", size.dead, 0},
		{"Retries", size.retries, due[core.Retrying]},
		{"Scheduled", size.scheduled, due[core.Scheduled]},
	} {
		b = append(appendName(b, scan.name), '{')
		b = appendIntegerMember(b, "cycles", 0)
		b = appendIntegerMember(b, "enqueued", int64(scan.due))
		b = appendIntegerMember(b, "size", int64(scan.size))
		b = append(appendIntegerMember(b, "wall_time_sec", 0), '}')
	}
	b = append(appendName(b, "Workers"), '{')
	b = appendIntegerMember(b, "reaped", reaped)
	return append(appendIntegerMember(b, "size", workers), '}', '}')
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

// Health is the part of INFO that the reference gives to everybody over HTTP. It costs the same however many queues there
// are. Any goroutine.
func (f *Frontend) Health() []byte {
	b := append([]byte(nil), '{')
	b = appendInstantMember(b, "now", f.b.Now())
	b = append(appendName(b, "server"), '{')
	b = appendTextMember(b, "description", f.o.Description)
	b = appendTextMember(b, "faktory_version", Version)
	b = appendIntegerMember(b, "connections", f.connections.Load())
	b = appendIntegerMember(b, "command_count", int64(f.commands.Load()))
	return append(b, "}}\n"...)
}
