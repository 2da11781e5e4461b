package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"broker/integration/harness"
	"broker/integration/server"
)

func TestMain(m *testing.M) {
	serveSelf()
	os.Exit(harness.Main(m))
}

func TestEveryModeRunsAgainstEveryServer(t *testing.T) {
	built := programs{}
	for _, g := range groups(built, nil, []string{"sync", "none"}) {
		for _, c := range g.contenders {
			if c.name == natsName && !harness.Nightly {
				continue // it takes a minute to compile
			}
			t.Run(g.name+", "+c.name, func(t *testing.T) {
				t.Parallel()
				c := ready(t, c)
				for _, m := range modes() {
					if !m.fits(c.dialect) {
						continue
					}
					f, err := measure(t.TempDir(), m, c, 300)
					if err != nil {
						t.Fatalf("mode %s: %v", m.letter, err)
					}
					if f.submitsPerSec <= 0 ||
						(m.rate != bytesRate && (f.jobsPerSec <= 0 || f.p50 <= 0 || f.p99 < f.p50)) {
						t.Errorf("mode %s: %+v", m.letter, f)
					}
				}
			})
		}
	}
}

// ready prepares the program of a contender, or skips the test if it is missing.
func ready(t *testing.T, c contender) contender {
	t.Helper()
	if c.ours {
		binary := harness.Binary(t)
		at := layout{at: atLeader}
		if c.name == followersName {
			at.at = atFollowers
		}
		for _, d := range optionalProtocols() {
			if d.dialect == c.dialect && c.cluster {
				at.optional = &d
				c.start = at.starter(binary)
				return c
			}
			if d.dialect == c.dialect {
				durability := c.name[len("broker "):]
				c.start = func(dir string) (*running, error) { return d.broker(binary, dir, durability) }
				return c
			}
		}
		all := append(protocols(), protocol{dialect: httpAPI{}, addr: httpAddr})
		addr := all[slices.IndexFunc(all, func(p protocol) bool { return p.dialect == c.dialect })].addr
		switch c.name {
		case clusterName, followersName:
			at.addr = addr
			c.start = at.starter(binary)
			return c
		case unixName:
			c.start = func(dir string) (*running, error) { return unixBroker(binary, dir) }
			return c
		case tlsName:
			c.start = func(dir string) (*running, error) { return tlsBroker(binary, dir) }
			return c
		}
		durability := c.name[len("broker "):]
		c.start = func(dir string) (*running, error) { return broker(binary, dir, durability, addr) }
		return c
	}
	if c.name == limitName || c.name == limitTLSName {
		return c
	}
	if durability, is := strings.CutPrefix(c.name, apiName); is {
		binary := harness.Binary(t)
		c.start = func(dir string) (*running, error) { return broker(binary, dir, durability, httpAddr) }
		return c
	}
	switch c.dialect.(type) {
	case gearman:
		harness.Need(t, "gearmand")
	case beanstalk:
		harness.Need(t, "beanstalkd")
	case faktory:
		harness.Need(t, "redis-server")
		binary := harness.Reference(t)
		c.start = func(dir string) (*running, error) { return peer(server.StartFaktory(binary, dir, "")) }
	case qless, conveyor:
		harness.Need(t, "redis-server")
	case nats:
		binary := harness.NATS(t)
		c.start = func(dir string) (*running, error) { return startNATS(binary, dir) }
	}
	return c
}

func TestHistogramQuantiles(t *testing.T) {
	var h histogram
	for i := range int64(1000) {
		h.add((i + 1) * int64(time.Microsecond))
	}
	for q, want := range map[float64]time.Duration{0.5: 500 * time.Microsecond, 0.99: 990 * time.Microsecond} {
		if got := h.quantile(q); got < want*95/100 || got > want*105/100 {
			t.Errorf("quantile %v is %v, not about %v", q, got, want)
		}
	}
}

func TestIDsAreCanonicalUUIDs(t *testing.T) {
	ids := newIDs()
	seen := map[string]bool{}
	for n := range 1000 {
		id := string(ids.append(nil, n))
		if len(id) != 36 || id[14] != '4' || id[19] != '8' || seen[id] {
			t.Fatalf("id %q", id)
		}
		seen[id] = true
	}
}

func TestUnknownModesAreRefused(t *testing.T) {
	t.Parallel()
	good := settings{modes: []string{"a", "h"}, groups: []string{"workq"}, durabilities: []string{"none"}}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(s *settings){
		func(s *settings) { s.modes = []string{"a", "z"} },
		func(s *settings) { s.groups = []string{"Workq"} },
		func(s *settings) { s.durabilities = []string{""} },
	} {
		bad := good
		if change(&bad); bad.check() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
