package qless

import (
	"strings"
	"testing"

	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

// refusing is a broker that refuses lists of operations while full is set.
type refusing struct {
	core.Broker
	full bool
}

// Do implements core.Broker.
func (b *refusing) Do(c core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	if len(ops) == 1 && b.full {
		if _, list := ops[0].(*core.Atomic); list {
			return append(into, core.Reply{Kind: core.Failed, Err: core.ErrDiskFull})
		}
	}
	return b.Broker.Do(c, ops, into)
}

func TestRefusedSyncIsRetried(t *testing.T) {
	t.Parallel()
	disk := &refusing{}
	s := frontendtest.Open(t, func(b core.Broker) frontends.Frontend {
		disk.Broker = b
		return plain(disk)
	}, frontendtest.InMemory)
	c := dial(t, s)
	disk.full = true
	core.DoOnce(disk.Broker, core.HTTP,
		&core.Submit{Job: &core.Job{ID: "other", Queue: "q", Type: "K", Body: []byte("{}")}})
	c.call("queues", "1", "q")
	disk.full = false
	if got := c.call("get", "2", "other"); !strings.Contains(got, `"klass":"K"`) {
		t.Errorf("the job of another protocol is %s", got)
	}
}
