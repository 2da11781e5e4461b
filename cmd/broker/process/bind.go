package process

import (
	"errors"
	"syscall"
	"time"

	"broker/core/engine"
	"broker/frontends/eventloop"
)

// bindRetryEvery is how long to wait between two attempts while another process holds an address or the store.
const bindRetryEvery = 100 * time.Millisecond

// listen binds every address before the store is opened, so that a conflict is reported at once and without side
// effects. With bind_retry it waits for the process that still holds an address, so that restarts may overlap.
func (p *Process) listen() (stopped bool, err error) {
	logged := false
	for {
		err = p.bindAll()
		if !isInUse(err) || time.Now().After(p.retryUntil) {
			return false, err
		}
		if !logged {
			p.log.Warn().Err(err).Dur("bind_retry_ms", p.config.BindRetry).Msg("address in use, retrying")
			logged = true
		}
		select {
		case <-p.shutdowns:
			return true, nil
		case <-time.After(bindRetryEvery):
		}
	}
}

// isInUse reports whether all errors in err are addresses in use. Then waiting may help.
func isInUse(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			if !isInUse(e) {
				return false
			}
		}
		return true
	}
	return errors.Is(err, syscall.EADDRINUSE)
}

// bindAll binds every address, or none.
func (p *Process) bindAll() error {
	listeners, certs, err := p.listenersAndCertificates()
	if err != nil {
		return err
	}
	p.certificates, p.httpListeners = certs, nil
	var errs []error
	if p.server, err = eventloop.Bind(listeners); err != nil {
		errs = append(errs, err)
	}
	if err := p.listenHTTP(); err != nil {
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return nil
	}
	p.closeSockets()
	return errors.Join(errs...)
}

// closeSockets closes what bindAll has bound.
func (p *Process) closeSockets() {
	if p.server != nil {
		p.server.StopAccepting()
	}
	for _, ln := range p.httpListeners {
		_ = ln.Close() // not used yet
	}
}

// openEngine opens the engine. With bind_retry it waits for the process that still holds the store, because a stopping
// broker releases its addresses before its store.
func (t *term) openEngine() (*engine.Engine, error) {
	logged := false
	for {
		e, err := engine.Open(t.engineOptions())
		if !errors.Is(err, engine.ErrInUse) || time.Now().After(t.retryUntil) {
			return e, err
		}
		if !logged {
			t.log.Warn().Err(err).Dur("bind_retry_ms", t.config.BindRetry).Msg("store in use, retrying")
			logged = true
		}
		time.Sleep(bindRetryEvery)
	}
}
