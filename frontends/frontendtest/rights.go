package frontendtest

import (
	"testing"

	"broker/access"
)

// LosingRead runs a test for each way in which a reload takes the right to read from a connected client: another role,
// or another secret. The client is the principal reader with the token old, beside another principal. The test calls
// reload once its clients are connected.
func LosingRead(t *testing.T, other access.Entry, test func(t *testing.T, control *access.Control, reload func())) {
	t.Helper()
	for name, now := range map[string]access.Entry{
		"another secret": {Grants: []access.Grant{{Role: access.Read}}, TokenSHA256: access.HashToken("new")},
		"another role":   {Grants: []access.Grant{{Role: access.Produce}}, TokenSHA256: access.HashToken("old")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			control := &access.Control{}
			load := func(reader access.Entry) {
				reader.Name = "reader"
				control.Load([]access.Entry{reader, other})
			}
			load(access.Entry{Grants: []access.Grant{{Role: access.Read}}, TokenSHA256: access.HashToken("old")})
			test(t, control, func() { load(now) })
		})
	}
}
