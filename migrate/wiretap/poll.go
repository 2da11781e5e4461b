package wiretap

// polls ask the second server for jobs that the first server does not deliver. Each has a connection of its own with
// the state of the client's connection, so that a job that the second server delivers disturbs no later request. Only
// the player uses it.
type polls struct {
	c    *Comparer
	next int              // number of the next connection, below zero
	of   map[int]pollConn // by the client's connection: its idle connection for polls
}

type pollConn struct {
	number  int
	version int // of the client's state that it has
}

func newPolls(c *Comparer) polls { return polls{c: c, next: -1, of: make(map[int]pollConn)} }

// noJob stands for a job that a client still waits for.
var noJob = &reply{raw: []byte("(no job)"), none: true}

// overdue asks for the clients that have waited for long.
func (p *polls) overdue(conns connections) error {
	if p.c.early.submitting.Load() > 0 {
		return nil
	}
	for number, r := range p.c.verdicts.overdue() {
		x := newExchange(number, r)
		x.up, x.probe, x.bytes = noJob, true, 0
		if err := p.poll(conns, x, x.req.poll); err != nil {
			return err
		}
	}
	return nil
}

// poll asks for a job. A connection that gets one keeps it.
func (p *polls) poll(conns connections, x *exchange, send []byte) error {
	version := p.c.stateVersion(x.line)
	idle, open := p.of[x.line]
	if open && idle.version != version {
		p.leave(conns, x.line)
		open = false
	}
	if !open {
		idle = pollConn{p.next, version}
		p.next--
		p.of[x.line] = idle
	}
	conn, err := p.c.connection(conns, idle.number, x.line)
	if err != nil {
		return err
	}
	p.c.verdicts.played(x)
	p.c.await(conn.send(x, send), x)
	if p.c.verdicts.held(x, idle.number) {
		delete(p.of, x.line)
	}
	return nil
}

// leave closes the idle connection of a client.
func (p *polls) leave(conns connections, line int) {
	if idle, open := p.of[line]; open {
		if conn := conns[idle.number]; conn != nil {
			conn.close()
			delete(conns, idle.number)
		}
		delete(p.of, line)
	}
}
