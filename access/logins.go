package access

import (
	"net/netip"
	"sync"
	"time"

	"broker/core"
)

// A client may fail LoginBurst times at once, then once every loginEvery.
const (
	LoginBurst = 20
	loginEvery = 3 * time.Second
	maxLogins  = 10_000 // remembered addresses and names

	maxLoginName = 64 // bytes of a name
)

// Logins counts the failed logins of all ports: by address, and by the name that the client gave, if any. IPv6
// addresses count by /64 network, because one host usually has a whole /64. A correct secret always passes, because
// many clients may share an address and only some of them may have a wrong secret. So a front-end checks the secret
// first and calls Failed after a failure:
//
//	if right(secret) { admit }
//	if wait := control.Logins().Failed(addr, name, now); wait > 0 { "too many failed logins" } else { "wrong secret" }
//
// If the check is expensive (Faktory's hash rounds), the front-end first calls Wait. Clients that must wait are checked
// too, but after all others. Only a wrong secret is a failed login, not a missing one. Any goroutine may use Logins.
// The zero value is ready to use; nil counts nothing.
type Logins struct {
	mu    sync.Mutex              // guards the fields below
	free  map[string]core.Instant // when an address or name has all its attempts back
	swept core.Instant            // when expired entries were last removed
}

// Wait is the time that a client must wait before its next failed login; zero: no wait. from is the client's address
// with or without a port. Unix sockets and an empty address never wait: the mode of the socket file controls access.
// name may be empty.
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
		if before == 0 { // further guesses do not extend the wait, because other clients may share the address
			l.makeRoomLocked(now)
			l.free[key] = max(l.free[key], now).Add(loginEvery)
		}
	}
	return wait
}

func (l *Logins) waitLocked(key string, now core.Instant) time.Duration {
	return max(l.free[key].Sub(now)-(LoginBurst-1)*loginEvery, 0)
}

// makeRoomLocked makes room for one more entry. It scans all entries at most once per loginEvery, so that a flood from
// many addresses stays cheap. In between, it removes an arbitrary entry.
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

// loginKeys returns the keys under which a failure is counted.
func loginKeys(from, name string) (keys []string) {
	if network := loginNetwork(from); network != "" {
		keys = append(keys, "address "+network)
		if name != "" {
			keys = append(keys, "name "+name[:min(len(name), maxLoginName)])
		}
	}
	return keys
}

// loginNetwork returns the client's address, or for IPv6 its /64 network; empty if it has none.
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
	network, _ := ip.Prefix(64) // fails only for an address with a zone
	return network.String()
}
