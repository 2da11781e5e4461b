package importer

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"broker/frontends/gearman/packet"
	"broker/migrate/wire"
)

// relay passes the results of foreground jobs back to the source, which passes them to its clients. It does not enable
// exceptions, so a failing job ends with WORK_FAIL.
type relay struct {
	source  *gearmanConn
	servers Servers

	conn    *gearmanConn
	created chan error    // the result of each submission; a serverError is a refusal
	ended   chan struct{} // closed when the reader has ended; err is then set
	err     error

	mu         sync.Mutex        // guards submitting, jobs and idle
	submitting []byte            // handle at the source of the job being submitted
	jobs       map[string][]byte // handle here → handle at the source
	idle       *sync.Cond
}

func (r *relay) open() error {
	conn, _, err := r.servers.dialPatient(r.servers.Target, GearmanPort) // a result may take any time
	if err != nil {
		return err
	}
	r.conn = newGearmanConn(conn)
	r.created, r.ended, r.jobs = make(chan error, 1), make(chan struct{}), make(map[string][]byte)
	r.idle = sync.NewCond(&r.mu)
	go func() { // ends when the connection does; close waits for it
		r.err = r.pass()
		close(r.ended)
		r.wake()
	}()
	return nil
}

// wake makes wait check again.
func (r *relay) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle.Broadcast()
}

// submit submits a foreground job. Later its result goes to the client. A refusal is a serverError.
func (r *relay) submit(ctx context.Context, j *gearmanJob) error {
	if r.conn == nil {
		if err := r.open(); err != nil {
			return err
		}
	}
	r.mu.Lock()
	r.submitting = j.handle
	r.mu.Unlock()
	r.conn.queue(submitForeground[j.priority], j.function, j.unique, j.body)
	if err := r.conn.flush(); err != nil {
		return err
	}
	select {
	case err := <-r.created:
		return err
	case <-r.ended:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pass handles the packets from this broker.
func (r *relay) pass() error {
	for {
		p, err := r.conn.next()
		if err != nil {
			return err
		}
		if p.Type() == packet.Error {
			r.created <- refusal(p)
			continue
		}
		if p.Type() == packet.JobCreated {
			r.mu.Lock() // locked, because the next packet may be the result
			r.jobs[string(p.Data())] = r.submitting
			r.mu.Unlock()
			r.created <- nil
			continue
		}
		if err := r.forward(p); err != nil {
			return err
		}
	}
}

// forward sends a packet on under the source's handle.
func (r *relay) forward(p wire.Packet) error {
	handle, rest, _ := strings.Cut(string(p.Data()), "\x00")
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.jobs[handle]
	if !known {
		return fmt.Errorf("packet %d for an unknown job", p.Type())
	}
	args := [][]byte{at}
	if p.Type() == packet.WorkStatus {
		num, den, _ := strings.Cut(rest, "\x00")
		args = append(args, []byte(num), []byte(den))
	} else if p.Type() != packet.WorkFail {
		args = append(args, []byte(rest))
	}
	r.source.queue(p.Type(), args...)
	if p.Type() == packet.WorkComplete || p.Type() == packet.WorkFail {
		delete(r.jobs, handle)
		r.idle.Broadcast()
	}
	return r.source.flush()
}

// wait returns when all results have been passed on.
func (r *relay) wait(ctx context.Context) error {
	if r.conn == nil {
		return nil
	}
	stop := context.AfterFunc(ctx, r.wake)
	defer stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.jobs) > 0 {
		select {
		case <-r.ended:
			return atBroker(r.err)
		default:
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%d clients of the source still wait for results: %w", len(r.jobs), ctx.Err())
		}
		r.idle.Wait()
	}
	return nil
}

func (r *relay) close() {
	if r.conn != nil {
		_ = r.conn.Close() // ends the reader
		<-r.ended
	}
}
