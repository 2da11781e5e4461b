package process

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"broker/operate/service"
)

func TestChangesByClientsAreLoggedForDebuggingOnly(t *testing.T) {
	t.Parallel()
	for via, level := range map[string]string{
		"workq": "debug", "gearman": "debug", "faktory": "debug", "qless": "debug", "http": "info", "console": "info",
		"": "info",
	} {
		var out bytes.Buffer
		p := &Process{log: zerolog.New(&out)}
		p.Audited(service.AuditEntry{Action: "jobs.flush", Via: via})
		if !strings.Contains(out.String(), `"level":"`+level+`"`) {
			t.Errorf("via %q: %s", via, out.String())
		}
	}
}
