package process

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"broker/config"
	"broker/frontends/eventloop"
)

// denialCounter counts the clients that the allow list of one front-end denies.
type denialCounter struct {
	name       string
	log        zerolog.Logger
	denied     atomic.Uint64
	lastLogged atomic.Int64 // Unix seconds; a flood of connections must not flood the log
}

// count is called by the accepting goroutines.
func (d *denialCounter) count(from net.Addr) {
	n := d.denied.Add(1)
	now := time.Now().Unix()
	if d.lastLogged.Swap(now) != now {
		d.log.Warn().Str("frontend", d.name).Str("remote", from.String()).Uint64("denied", n).
			Msg("client denied by allow list")
	}
}

// setAllowList sets the allow list of a listener and counts the clients that it denies.
func (p *Process) setAllowList(l *eventloop.Listener, allow config.Networks) {
	if p.denied == nil {
		p.denied = make(map[string]*denialCounter)
	}
	d := p.denied[l.Name]
	if d == nil {
		d = &denialCounter{name: l.Name, log: p.log}
		p.denied[l.Name] = d
	}
	l.Allow, l.Denied = allow, d.count
}
