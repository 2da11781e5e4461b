package access

import (
	"net/netip"
	"sync"
	"time"

	"broker/core"
)

// Failed logins: so many at once, then one every so often.
const (
	LoginBurst = 20
	loginEvery = 3 * time.Second
	maxLogins  = 10_000 // addresses and names that are remembered

	maxLoginName = 64 // bytes of a name
)

// Logins counts failed logins of all ports together: by address (IPv6: by /64, since one host has a whole one), and by the
// name that the client gave, if any. A right secret always passes: many clients may share an address, and some of them may
// have a wrong secret. So a front-end checks the secret first and asks after a failure:
//
//	if right(secret) { admit }
//	if wait := control.Logins().Failed(addr, name, now); wait > 0 { "too many failed logins" } else { "wrong secret" }
//
// Where the check itself is expensive (Faktory's rounds), it asks Wait before: a client that owes a wait is checked too, but
// after those that owe none. A failed login is one wrong secret, not a missing one. Any goroutine may use it; the zero value
// is ready, and nil counts nothing.
type Logins struct {
	mu    sync.Mutex              // guards the rest
	free  map[string]core.Instant // when an address or name would have all its tries back
	swept core.Instant            // when the entries that owe nothing were removed last
}

// Wait is how long a client has to wait before its next failed login is answered like the first ones; zero: it owes nothing.
// from is the client's address with or without a port; empty or a unix socket: the file's mode says who may try. name may be
// empty.
func (l *Logins) Wait(from, name string, now core.Instant) time.Duration {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var wait time.Duration
	for _, key := range loginKeys(from, name) {
		wait = max(wait, l.waitLocked(key, now))
	}
	return wait
}

// Failed counts a failed login and returns what Wait would have returned before it.
func (l *Logins) Failed(from, name string, now core.Instant) time.Duration {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var wait time.Duration
	for _, key := range loginKeys(from, name) {
		before := l.waitLocked(key, now)
		wait = max(wait, before)
		if before == 0 { // a client that goes on guessing does not lengthen its wait: others may share the address
			l.makeRoomLocked(now)
			l.free[key] = max(l.free[key], now).Add(loginEvery)
		}
	}
	return wait
}

func (l *Logins) waitLocked(key string, now core.Instant) time.Duration {
	return max(l.free[key].Sub(now)-(LoginBurst-1)*loginEvery, 0)
}

// makeRoomLocked sees to it that one more entry fits. It looks at all entries at most once per loginEvery: a flood from
// everywhere must not cost more than it brings, and then any entry makes room.
func (l *Logins) makeRoomLocked(now core.Instant) {
	if l.free == nil {
		l.free = make(map[string]core.Instant)
	}
	if len(l.free) < maxLogins {
		return
	}
	if now.Sub(l.swept) >= loginEvery {
		l.swept = now
		for key, at := range l.free {
			if at <= now {
				delete(l.free, key)
			}
		}
	}
	for key := range l.free {
		if len(l.free) < maxLogins {
			return
		}
		delete(l.free, key)
	}
}

// loginKeys are what a failure is counted for.
func loginKeys(from, name string) (keys []string) {
	if network := loginNetwork(from); network != "" {
		keys = append(keys, "address "+network)
		if name != "" {
			keys = append(keys, "name "+name[:min(len(name), maxLoginName)])
		}
	}
	return keys
}

// loginNetwork is the address or, of IPv6, the /64 that a client is in; empty: it has none.
func loginNetwork(from string) string {
	ip, err := netip.ParseAddr(from)
	if err != nil {
		withPort, err := netip.ParseAddrPort(from)
		if err != nil {
			return ""
		}
		ip = withPort.Addr()
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	network, _ := ip.Prefix(64) // fails for an address with a zone only
	return network.String()
}
