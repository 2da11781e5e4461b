package service

import (
	"testing"

	"broker/access"
)

// TestFirstPrincipalsRevokeTheRightsOfRunningRequests makes requests of a client that was everyone when they arrived.
func TestFirstPrincipalsRevokeTheRightsOfRunningRequests(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	control := &access.Control{}
	control.Load([]access.Entry{{Name: "shop", Grants: []access.Grant{{Role: access.Admin}}}})
	for name, caller := range map[string]Caller{
		"revoked": {Principal: access.Everyone, Access: control},
		"none":    {},
	} {
		for what, request := range map[string]func() error{
			"heartbeats": func() error { _, err := s.HeartbeatMany(t.Context(), caller, nil, nil); return err },
			"a batch":    func() error { _, err := s.OpenBatch(t.Context(), caller, BatchSubmission{}); return err },
			"a limit":    func() error { return s.RemoveLimit(t.Context(), caller, "", "", "api") },
			"a change":   func() error { return s.ChangeCluster(t.Context(), caller, ClusterChange{}) },
		} {
			if err := request(); !IsCode(err, CodeForbidden) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		if queues := caller.readable(); len(queues) != 0 {
			t.Errorf("%s may read %v", name, queues)
		}
	}
}
