package cli

import (
	"errors"
	"strings"
	"testing"

	"broker/migrate/switchover"
)

func TestImportLineNamesTheBrokerOfTheShadow(t *testing.T) {
	t.Parallel()
	for protocol, want := range map[string]string{
		"gearman":   "broker import --from gearmand old:4730 --to new:4740 --queues a,b --follow",
		"beanstalk": "broker import --from beanstalkd old:4730 --server http://new:HTTP_PORT --queues a,b --follow",
	} {
		s := switchover.Status{Protocol: protocol, Server: "old:4730", Broker: "new:4740"}
		if got := importLine(s, []string{"a", "b"}); got != want {
			t.Errorf("%s: %s", protocol, got)
		}
	}
	var refused *ExitError
	if _, err := newClient("http://new:"+unknownPort, ""); !errors.As(err, &refused) || refused.Code != ExitUsage ||
		!strings.Contains(err.Error(), "--server") {
		t.Errorf("a command with the placeholder: %v", err)
	}
}
