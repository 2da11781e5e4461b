package process

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"broker/config"
)

func TestOpenPortsAreLogged(t *testing.T) {
	t.Parallel()
	addresses := func(listen string) config.Addresses {
		all, err := config.ParseAddresses(listen)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	for what, test := range map[string]struct {
		settings config.Protocol
		password bool
		warned   int
	}{
		"open":                 {config.Protocol{Listen: addresses(":1")}, false, 1},
		"open twice":           {config.Protocol{Listen: addresses("0.0.0.0:1, 10.0.0.1:2, 127.0.0.1:3")}, false, 2},
		"certificate alone":    {config.Protocol{Listen: addresses(":1"), TLSCert: "c"}, false, 1},
		"loopback":             {config.Protocol{Listen: addresses("127.0.0.1:1, [::1]:1, localhost:1, unix:/s")}, false, 0},
		"off":                  {config.Protocol{Listen: addresses("off")}, false, 0},
		"a password":           {config.Protocol{Listen: addresses(":1")}, true, 0},
		"client certificates":  {config.Protocol{Listen: addresses(":1"), TLSCert: "c", TLSClientCA: "a"}, false, 0},
		"an allow-list":        {config.Protocol{Listen: addresses(":1"), Allow: config.Networks{netip.MustParsePrefix("10.0.0.0/8")}}, false, 0},
		"a list that is empty": {config.Protocol{Listen: addresses(":1"), Allow: config.Networks{}}, false, 1},
	} {
		var log bytes.Buffer
		p := &Process{log: zerolog.New(&log)}
		p.announceFrontend("gearman", test.settings, test.password)
		if got := strings.Count(log.String(), "reachable from other hosts"); got != test.warned {
			t.Errorf("%s: warned %d times: %s", what, got, log.String())
		}
	}
}
