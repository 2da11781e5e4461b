package access

import (
	"fmt"
	"testing"
	"time"

	"broker/core"
)

func TestFailedLoginsAreCountedByAddressNetworkAndName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		fails            func(i int) (from, name string)
		from, user       string
		limited          bool
		otherFrom, other string
	}{
		{"one address", func(int) (string, string) {
			return "192.0.2.1:9", ""
		}, "192.0.2.1", "", true, "192.0.2.2", ""},
		{"many ports", func(i int) (string, string) {
			return fmt.Sprintf("192.0.2.1:%d", i+1), ""
		}, "192.0.2.1:99", "", true, "192.0.2.2", ""},
		{"mapped", func(int) (string, string) {
			return "[::ffff:192.0.2.1]:9", ""
		}, "192.0.2.1", "", true, "[::ffff:192.0.2.2]:9", ""},
		{"one network of IPv6", func(i int) (string, string) {
			return fmt.Sprintf("[2001:db8::%x]:9", i+1), ""
		}, "[2001:db8::ffff]:9", "", true, "[2001:db8:0:1::1]:9", ""},
		{"a zone", func(int) (string, string) {
			return "[fe80::1%eth0]:9", ""
		}, "[fe80::2%eth1]:9", "", true, "[2001:db8::1]:9", ""},
		{"one name from everywhere", func(i int) (string, string) {
			return fmt.Sprintf("192.0.2.%d:9", i+1), "shop"
		}, "198.51.100.1:9", "shop", true, "198.51.100.1:9", "mailer"},
		{"a unix socket", func(int) (string, string) { return "", "shop" }, "", "shop", false, "@", "shop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var l Logins
			now := core.InstantOf(time.Unix(1e9, 0))
			for i := range LoginBurst {
				if wait := l.Failed(first(c.fails(i)), second(c.fails(i)), now); wait != 0 {
					t.Fatalf("failure %d has to wait %v", i, wait)
				}
			}
			if wait := l.Wait(c.from, c.user, now); (wait > 0) != c.limited {
				t.Errorf("after %d failures the wait is %v", LoginBurst, wait)
			}
			if wait := l.Wait(c.otherFrom, c.other, now); wait != 0 {
				t.Errorf("somebody else waits %v", wait)
			}
			if wait := l.Wait(c.from, c.user, now.Add(loginEvery)); wait != 0 {
				t.Errorf("later the wait is still %v", wait)
			}
		})
	}
}

func first(a, _ string) string  { return a }
func second(_, b string) string { return b }

// A client that keeps guessing does not extend the wait of others at the same address.
func TestFurtherGuessesDoNotExtendTheWait(t *testing.T) {
	t.Parallel()
	var l Logins
	now := core.InstantOf(time.Unix(1e9, 0))
	for range 50 * LoginBurst {
		l.Failed("192.0.2.1:9", "", now)
	}
	if wait := l.Wait("192.0.2.1:9", "", now); wait <= 0 || wait > loginEvery {
		t.Errorf("the wait is %v", wait)
	}
}

func TestFloodOfFailedLoginsIsBounded(t *testing.T) {
	t.Parallel()
	var l Logins
	now := core.InstantOf(time.Unix(1e9, 0))
	for i := range 2 * maxLogins {
		l.Failed(fmt.Sprintf("[2001:db8:%x:%x::1]:9", i>>16, i&0xffff), "", now)
	}
	if n := len(l.free); n != maxLogins {
		t.Errorf("%d entries, want %d", n, maxLogins)
	}
	now = now.Add(2 * loginEvery)
	l.Failed("192.0.2.1:9", "", now)
	if n := len(l.free); n != 1 {
		t.Errorf("%d entries once all others owe nothing, want 1", n)
	}
}

func TestNilLoginsCountNothing(t *testing.T) {
	t.Parallel()
	var c *Control
	for range 2 * LoginBurst {
		if wait := c.Logins().Failed("192.0.2.1:9", "", 1); wait != 0 {
			t.Fatal(wait)
		}
	}
}
