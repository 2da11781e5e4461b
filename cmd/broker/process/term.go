package process

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"broker/config"
	"broker/core"
	"broker/core/archive"
	"broker/core/engine"
	"broker/core/remote"
	"broker/frontends/eventloop"
	"broker/operate/hostile"
	"broker/operate/otlp"
	"broker/operate/push"
	"broker/operate/service"
)

// term holds the parts that live as long as an open store: until the program stops or, in a cluster, until this node no
// longer leads.
type term struct {
	*Process

	config     Settings          // the process's settings that apply in this term
	revision   int               // of these settings
	server     *eventloop.Server // alone, the process's
	links      *remote.Server    // for the clients of nodes that follow; nil: this is no node of a cluster
	engine     *engine.Engine
	broker     core.Broker     // the broker for clients: the engine, or a hostile broker in front of it
	hostile    *hostile.Broker // nil: clients meet no faults
	frontends  frontendSet
	sqs        *sqsPort // nil: it is off
	service    *service.Service
	routes     routes
	routeEpoch atomic.Uint64
	schedules  scheduleLoader
	tracing    *otlp.Exporter  // nil: no spans are sent
	pusher     *push.Pusher    // nil until clients are served
	qlessLoad  chan struct{}   // closed when the load of Qless's state has ended; nil: there was none
	closing    atomic.Bool     // stopQlessLoad was called
	archive    *archive.Writer // nil: there is none
	sending    sync.Mutex      // held while a backup is sent
}

// newTerm creates a term with the current settings. The server serves its clients.
func (p *Process) newTerm(server *eventloop.Server) *term {
	p.reloads.Lock()
	defer p.reloads.Unlock()
	return &term{Process: p, config: p.config, revision: p.revision, server: server}
}

// beginTerm makes reloads reach a term, and applies the changes since newTerm.
func (p *Process) beginTerm(t *term) {
	p.reloads.Lock()
	defer p.reloads.Unlock()
	if t.revision != p.revision {
		t.apply(&p.config)
	}
	p.term = t
}

// endTerm stops reloads from reaching the term.
func (p *Process) endTerm() {
	p.reloads.Lock()
	p.term = nil
	p.reloads.Unlock()
}

func (t *term) engineOptions() engine.Options {
	c := &t.config
	return engine.Options{
		Dir: c.Data,
		Durability: map[string]engine.Durability{
			"sync": engine.Sync, "relaxed": engine.Relaxed, "none": engine.None,
		}[c.Durability],
		SyncEvery:        c.SyncInterval,
		CacheBytes:       int(c.CacheBytes),
		DefaultLease:     c.DefaultLease,
		PoisonAfter:      cmp.Or(c.PoisonAfter, -1),
		MinFreeDiskBytes: uint64(c.MinFreeDisk),
		Wakeup:           engine.Wakeup(c.Gearman.WorkerWakeup),
		Clock:            t.clock(),
		Listener:         listeners{logListener{log: t.log}, t.api.Listener(), t.exitOnFailure()},
		Progress:         t.api.Progress,
		Archive:          t.newArchive(),
	}
}

// makeFrontends makes the front-ends. In a cluster, nodes that follow register their clients with them before they
// serve any.
func (t *term) makeFrontends() {
	t.broker = t.engine
	if t.Faults != nil {
		t.hostile = hostile.New(t.engine, *t.Faults)
		t.broker = t.hostile
	}
	t.frontends = t.buildFrontends()
}

// serveClients starts the front-ends.
func (t *term) serveClients() error {
	t.applyLimits(&Settings{}, &t.config)
	t.applyPolicies(&Settings{}, &t.config)
	t.applyKeepDone(nil, t.config.KeepDone)
	if err := t.serveSQS(); err != nil {
		return err
	}
	t.schedules = scheduleLoader{broker: t.engine, template: t.frontends.faktory.Template, log: t.log}
	t.schedules.load(t.config.Crons)
	if err := t.openService(); err != nil {
		return err
	}
	if err := t.openTracing(); err != nil {
		return err
	}
	loops := processors()
	if n := t.config.EventLoops; n > 0 {
		loops = n
	}
	maxConns := maxConnections(&t.config.Config)
	maxConns[gearmanHTTPName] = t.config.Gearman.MaxConnections
	err := t.server.Serve(eventloop.Options{
		Broker: t.engine, Frontends: t.frontends.byName, Handoffs: t.sqs.handoffs(), MaxConns: maxConns,
		MaxSockets: processSocketLimits().clients, MaxOutput: int(t.config.Limits.OutputBytes),
		Buffers: int(t.config.Limits.BufferBytes), Silent: t.cluster != nil, Loops: loops, Log: t.log,
	})
	if err != nil {
		return err
	}
	if !t.config.Qless.Listen.Off() {
		t.loadQless()
	}
	t.openPush()
	t.api.Ready(t.backend())
	return nil
}

// maxConnections are the limits of the front-ends.
func maxConnections(c *config.Config) map[string]int {
	all := make(map[string]int)
	for _, f := range c.WireProtocols() {
		all[f.Name] = f.MaxConnections
	}
	if n := all["faktory"]; n > 0 {
		// Faktory clients above the limit are refused after their HELLO. The loop's limit is for clients that never
		// send HELLO.
		all["faktory"] = n + n/8 + 16
	}
	return all
}

// loadQless loads the state of Qless while all other clients are served. A load that fails ends the program.
func (t *term) loadQless() {
	done := make(chan struct{})
	t.qlessLoad = done
	go func() {
		defer close(done)
		begin := time.Now()
		switch err := t.frontends.qless.Start(); {
		case err == nil:
			t.log.Info().Dur("took_ms", time.Since(begin)).Msg("qless serves its clients")
		case !t.engine.Stopped() && !t.closing.Load():
			t.RequestShutdown(Shutdown{Cause: fmt.Errorf("load the state of qless: %w", err)})
		}
	}()
}

// stopQlessLoad ends a load that is running.
func (t *term) stopQlessLoad() {
	if t.qlessLoad == nil {
		return
	}
	t.closing.Store(true)
	t.frontends.qless.Stop()
	<-t.qlessLoad
}

// notifyFaktoryClients waits a short time, in which Faktory clients get the shutdown error with their next request.
func (t *term) notifyFaktoryClients() {
	if t.frontends.faktory == nil || t.Connections()["faktory"].Open == 0 {
		return
	}
	t.frontends.faktory.Shutdown()
	for end := time.Now().Add(notifyFor); time.Now().Before(end) && t.Connections()["faktory"].Open > 0; {
		time.Sleep(notifyFor / 50)
	}
}

// Connections counts the connections of each front-end to this node, also those from before it led.
func (t *term) Connections() map[string]service.Connections {
	if k := t.cluster; k != nil {
		if s := k.front.Load(); s != nil {
			return t.connectionsOf(t.server, s.server)
		}
	}
	return t.connectionsOf(t.server)
}

func (p *Process) connectionsOf(servers ...*eventloop.Server) map[string]service.Connections {
	all := make(map[string]service.Connections)
	for _, s := range servers {
		for name, c := range s.Counts() {
			sum := all[name]
			sum.Open, sum.Accepted, sum.Refused = sum.Open+c.Open, sum.Accepted+c.Accepted, sum.Refused+c.Refused
			sum.Dismissed, sum.Late = sum.Dismissed+c.Dismissed, sum.Late+c.Late
			all[name] = sum
		}
	}
	for name, d := range p.denied {
		c := all[name]
		c.Denied = d.denied.Load()
		all[name] = c
	}
	return all
}

// drain starts or ends a drain as a signal has requested, and as configured.
func (t *term) drain(on bool) {
	op := t.service.DrainOp(on, nil)
	if t.RefuseOnly {
		op = &core.Drain{RefuseJobs: on}
	}
	all := core.DoOnce(t.engine, core.Internal, op, &core.ReadStats{})
	switch err := all[0].Err; {
	case err != nil:
		t.log.Error().Err(err).Msg("cannot drain")
	case !on:
		t.log.Info().Msg("jobs are handed out again")
	case t.RefuseOnly:
		t.log.Info().Msg("draining, new jobs are refused")
	default:
		t.log.Info().Bool("reject_new_jobs", op.RefuseJobs).Int("leased", all[1].Stats.Jobs[core.Leased]).
			Msg("draining, no job is handed out")
	}
}

// finishJobs stops accepting connections, and waits until no unfinished job or no client is left.
func (t *term) finishJobs() {
	t.log.Info().Msg("waiting for jobs to finish before shutdown")
	t.server.StopAccepting()
	client := t.engine.Open(core.ClientOptions{Protocol: core.Internal, Wake: func() {}})
	defer t.engine.Close(client)
	for t.busy(client) {
		select {
		case e := <-t.shutdowns:
			if !e.Graceful {
				return
			}
		case <-time.After(gracefulPoll):
		}
	}
}

// busy reports that there are both connections and unfinished jobs.
func (t *term) busy(client core.ClientID) bool {
	open := 0
	for _, c := range t.server.Counts() {
		open += c.Open
	}
	if t.links != nil {
		_, elsewhere, _ := t.links.Counts()
		open += elsewhere
	}
	if open == 0 || t.engine.Stopped() {
		return false
	}
	for _, r := range t.engine.Do(client, []core.Op{&core.ReadStats{}}, nil) {
		if r.Stats == nil {
			continue
		}
		for _, state := range core.States {
			if state.Unfinished() && r.Stats.Jobs[state] > 0 {
				return true
			}
		}
	}
	return false
}

// stopLeasing ends the waits of API requests and hands out no more jobs. So jobs of closed connections do not go to
// connections that are closed next.
func (t *term) stopLeasing() {
	if t.service != nil {
		t.service.Close()
	}
	core.DoOnce(t.engine, core.Internal, &core.Drain{On: true})
}

// close sends the replies that are committed until the context ends, then the spans, and closes the engine.
func (t *term) close(ctx context.Context, spansFor time.Duration) error {
	pushed := t.closePush(ctx)
	unlinked := t.closeLinks(ctx)
	t.sqs.stop(ctx)
	t.server.Stop(ctx)
	<-unlinked
	<-pushed
	t.stopQlessLoad()
	t.closeTracing(spansFor)
	return t.engine.Shutdown()
}

// closeLinks ends the links to nodes that follow. What it returns is closed when they have ended.
func (t *term) closeLinks(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if t.links != nil {
			t.links.Close(ctx)
		}
	}()
	return done
}

// abandon closes all parts when another node may lead. It commits and sends nothing more.
func (t *term) abandon() {
	t.engine.Abandon()
	t.api.Unready()
	t.sqs.abandon()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	<-t.closeLinks(now)
	<-t.closePush(now)
	t.server.Stop(now)
	t.service.Close()
	t.stopQlessLoad()
	t.closeTracing(0)
	_ = t.engine.Shutdown() // nothing is left to lose
}
