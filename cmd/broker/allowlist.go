package main

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"broker/config"
	"broker/frontends/eventloop"
)

// door counts the clients whom the allow-list of one front-end keeps out.
type denialCounter struct {
	name       string
	log        zerolog.Logger
	denied     atomic.Uint64
	lastLogged atomic.Int64 // when that was last logged, Unix seconds: a flood must not fill the log
}

// deny is called from the goroutines that accept.
func (d *denialCounter) count(from net.Addr) {
	n := d.denied.Add(1)
	now := time.Now().Unix()
	if d.lastLogged.Swap(now) != now {
		d.log.Warn().Str("frontend", d.name).Str("remote", from.String()).Uint64("denied", n).
			Msg("client outside of the allow-list")
	}
}

// guard gives a listener its allow-list, and counts whom it keeps out.
func (p *process) setAllowList(l *eventloop.Listener, allow []string) {
	if p.denied == nil {
		p.denied = make(map[string]*denialCounter)
	}
	d := p.denied[l.Name]
	if d == nil {
		d = &denialCounter{name: l.Name, log: p.log}
		p.denied[l.Name] = d
	}
	prefixes, err := config.ParseAllow(allow)
	if err != nil {
		panic(err) // validation has let it through
	}
	l.Allow, l.Denied = prefixes, d.count
}
