package engine_test

import (
	"errors"
	"testing"

	"broker/core"
)

// TestDisconnectClosesTheConnection has one client disconnect another: its Close is called without the lock, and
// disconnecting a client without a connection fails.
func TestDisconnectClosesTheConnection(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	operator := d.client(core.Internal)
	closed := 0
	var victim core.ClientID
	victim = d.Open(core.ClientOptions{Protocol: core.Gearman, Wake: func() {}, Close: func() {
		closed++
		d.Close(victim) // it would hang under the lock
	}})
	if r := d.one(operator, &core.DisconnectClient{Client: victim}); r.Kind != core.Accepted || closed != 1 {
		t.Fatalf("%+v, closed %d times", r, closed)
	}
	if r := d.one(operator, &core.DisconnectClient{Client: victim}); !errors.Is(r.Err, core.ErrNotFound) || closed != 1 {
		t.Errorf("a client that is gone: %+v, closed %d times", r, closed)
	}
	if r := d.one(operator, &core.DisconnectClient{Client: operator}); !errors.Is(r.Err, core.ErrInvalid) {
		t.Errorf("a client without a connection: %+v", r)
	}
}
