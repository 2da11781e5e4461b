package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"broker/core/engine"
)

// Deadlines of a shutdown. In total they stay below five seconds, the shortest timeout of common supervisors.
const (
	notifyFor = time.Second             // time to notify clients, if the protocol can do that
	flushFor  = 3 * time.Second         // for replies that wait for their commit, and for slow readers
	stopFor   = 4500 * time.Millisecond // for everything
)

// gracefulPoll is how often a graceful shutdown checks whether the work is done.
const gracefulPoll = 200 * time.Millisecond

// waitForShutdown handles drain requests until a shutdown is requested.
func (t *term) waitForShutdown() Shutdown {
	for {
		select {
		case e := <-t.shutdowns:
			return e
		case on := <-t.drainRequests:
			t.drain(on)
		}
	}
}

// Run builds the parts, serves until a shutdown is requested, and closes the parts in reverse order.
func (p *Process) Run() error {
	tuneGC()
	p.retryUntil = time.Now().Add(p.config.BindRetry)
	if p.config.Cluster.Enabled() {
		return p.runCluster()
	}
	if stopped, err := p.listen(); err != nil || stopped {
		return err
	}
	if p.OnBound != nil {
		if err := p.OnBound(); err != nil {
			return err
		}
	}
	if err := p.serveHTTP(); err != nil {
		return err
	}
	t := p.newTerm(p.server)
	stopRequested, err := p.openStore(t)
	if err != nil || stopRequested {
		p.server.StopAccepting()
		_ = p.http.Close() // no request needs a graceful end
		return err
	}
	closeAll := func() error { return p.closeAll(t) }
	t.makeFrontends()
	if err := t.serveClients(); err != nil {
		return errors.Join(err, p.stop(closeAll))
	}
	p.beginTerm(t)
	p.announce()
	if p.OnReady != nil {
		if err := p.OnReady(); err != nil {
			return errors.Join(err, p.stop(closeAll))
		}
	}
	p.notifyReady()
	if p.allowReloads() {
		_ = p.Reload() // it has logged what is wrong
	}
	end := t.waitForShutdown()
	if end.Graceful {
		t.finishJobs()
	}
	return errors.Join(end.Cause, p.stop(closeAll))
}

// openStore opens the engine. It gives up when a shutdown is requested, without changing the store.
func (p *Process) openStore(t *term) (stopRequested bool, err error) {
	type opened struct {
		engine *engine.Engine
		err    error
	}
	done := make(chan opened, 1)
	go func() {
		e, err := t.openEngine()
		done <- opened{e, err}
	}()
	select {
	case o := <-done:
		t.engine = o.engine
		return false, o.err
	case <-p.shutdowns:
		return true, nil
	}
}

// stop calls the function that closes all parts. It returns in time even if a part hangs.
func (p *Process) stop(closeAll func() error) error {
	p.log.Info().Msg("stopping")
	p.notify(daemon.SdNotifyStopping)
	done := make(chan error, 1)
	go func() { done <- closeAll() }()
	select {
	case err := <-done:
		if err == nil {
			p.log.Info().Msg("stopped")
		}
		return err
	case <-time.After(stopFor):
		return fmt.Errorf("shutdown did not finish within %v", stopFor)
	}
}

// closeAll sends the replies that are committed, and closes the parts in reverse order.
func (p *Process) closeAll(t *term) error {
	p.forbidReloads()
	p.api.Stopping()
	p.server.StopAccepting()
	t.stopLeasing()
	t.notifyFaktoryClients()
	ctx, cancel := context.WithTimeout(context.Background(), flushFor)
	defer cancel()
	err := t.close(ctx, stopFor)
	_ = p.http.Shutdown(ctx) // a scrape that is interrupted will be repeated
	return err
}
