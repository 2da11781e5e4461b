package main

import "broker/frontends/console"

// backend is what the HTTP port tells of.
func (p *process) backend() console.Backend {
	return console.Backend{
		Broker: p.engine, Connections: p.connections, Stats: p.frontends.faktory.Info, Backup: p.backup,
		Syncs:   p.engine.SyncLatency,
		Workers: p.workers, SetWorkerState: p.frontends.faktory.SetWorkerState, Cron: p.cronEntries,
	}
}

// workers lists Faktory's as the console wants them.
func (p *process) workers() []console.Worker {
	known := p.frontends.faktory.Workers()
	rows := make([]console.Worker, len(known))
	for i := range known {
		w := &known[i]
		rows[i] = console.Worker{
			WID: w.WID, State: w.State.String(), Hostname: w.Hostname, Username: w.Username, PID: w.PID, Labels: w.Labels,
			Version: w.ProtocolVersion, RSSKB: w.RSSKB, Connections: w.Connections, RemoteAddr: w.RemoteAddr,
			StartedAt: w.StartedAt, BeatAt: w.BeatAt,
		}
	}
	return rows
}

// cronEntries lists the timetable as the console wants it.
func (p *process) cronEntries() []console.CronEntry {
	known := p.timetable.table.Entries()
	rows := make([]console.CronEntry, len(known))
	for i, e := range known {
		rows[i] = console.CronEntry{Schedule: e.Spec, Type: e.Type, Queue: e.Queue, Next: e.Next, Last: e.LastRun}
	}
	return rows
}
