package httpapi

import (
	"sync"
	"time"

	"broker/core"
)

// Failed logins: so many at once from one address, then one every so often.
const (
	loginBurst = 20
	loginEvery = 3 * time.Second
	maxLogins  = 10_000 // addresses that are remembered
)

// loginLimiter slows down clients that guess passwords.
type loginLimiter struct {
	now func() core.Instant

	mu   sync.Mutex              // guards free
	free map[string]core.Instant // when the address would have all its tries back
}

func newLoginLimiter(now func() core.Instant) *loginLimiter {
	return &loginLimiter{now: now, free: make(map[string]core.Instant)}
}

// wait is how long an address has to wait before its next try; zero: it may try now.
func (l *loginLimiter) wait(host string) time.Duration {
	if host == "" {
		return 0 // a unix socket: the file's mode says who may try
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.free[host].Sub(l.now())-(loginBurst-1)*loginEvery, 0)
}

// failed counts a wrong password.
func (l *loginLimiter) failed(host string) {
	if host == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if len(l.free) >= maxLogins {
		for h, at := range l.free {
			if at <= now {
				delete(l.free, h)
			}
		}
		if len(l.free) >= maxLogins {
			clear(l.free) // a flood from everywhere; forgetting it is better than holding it
		}
	}
	l.free[host] = max(l.free[host], now).Add(loginEvery)
}
