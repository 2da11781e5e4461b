package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"broker/core"
	"broker/frontends/eventloop"
	"broker/frontends/sqs"
	"broker/operate/httpapi"
)

// sqsName is the name of the SQS front-end in settings, logs and metrics. net/http serves it.
const sqsName = "sqs"

// sqsPort serves clients of SQS. A nil one serves none.
type sqsPort struct {
	conns  *eventloop.Handoff
	server *http.Server
	close  func() // ends requests that wait
}

// serveSQS starts the front-end, if it is on.
func (t *term) serveSQS() (err error) {
	if !t.config.SQS.Listen.Off() {
		t.sqs, err = t.newSQSPort(t.frontends.sqs)
	}
	return err
}

// loadQueues reads the stored queues of SQS, before nodes that follow ask for them.
func (t *term) loadQueues() error { return t.frontends.sqs.Load() }

// newSQSPort starts a front-end.
func (p *Process) newSQSPort(front *sqs.Frontend) (*sqsPort, error) {
	if err := front.Start(); err != nil {
		return nil, fmt.Errorf("start sqs: %w", err)
	}
	s := &sqsPort{conns: eventloop.NewHandoff(), server: front.Server(), close: front.Close}
	conns := p.disturbed(core.SQS, s.conns)
	go func() { // ends when the server is closed
		if err := s.server.Serve(conns); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			p.log.Error().Err(err).Str("frontend", sqsName).Msg("http server failed")
		}
	}()
	return s, nil
}

// SQSActions returns the SQS requests by action.
func (t *term) SQSActions() []httpapi.SQSAction {
	counts := t.frontends.sqs.Actions()
	all := make([]httpapi.SQSAction, len(counts))
	for i, c := range counts {
		all[i] = httpapi.SQSAction{
			Name: c.Action, Done: c.Done, Refused: c.Refused, Failed: c.Failed, Seconds: c.Took.Seconds(),
		}
	}
	return all
}

// handoffs are the listeners whose connections the event loop passes to other servers.
func (s *sqsPort) handoffs() map[string]*eventloop.Handoff {
	if s == nil {
		return nil
	}
	return map[string]*eventloop.Handoff{sqsName: s.conns}
}

// stop ends requests that wait, and lets the others finish.
func (s *sqsPort) stop(ctx context.Context) {
	if s == nil {
		return
	}
	s.close()
	if s.server.Shutdown(ctx) != nil {
		_ = s.server.Close() // the rest had enough time
	}
}

// abandon closes all connections.
func (s *sqsPort) abandon() {
	if s == nil {
		return
	}
	_ = s.server.Close() // nothing more is sent
	s.close()
}
