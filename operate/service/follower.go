package service

import (
	"context"

	"broker/core"
)

// NewFollower makes the service of a node of a cluster that follows, over the leader's broker. It needs no leader to
// begin with. It serves what producers and workers ask for: Submit without an idempotency key, leases, and reports
// about them. What else a Service does needs what only that of the leader has, such as the audit log.
func NewFollower(o Options) *Service {
	s := newService(o)
	s.follows = true
	return s
}

// learnTokenKey makes a node that follows read the key of tokens, before it makes or reads the first one. It keeps a
// key that is on disk only: another one is made if it is lost with the leader.
func (s *Service) learnTokenKey(ctx context.Context, c *session) error {
	if s.tokenKey.Load() != nil {
		return nil
	}
	r, err := c.call(ctx, &core.ReadMeta{Name: tokenKeyMeta})
	if err == nil && !s.takeTokenKey(r.Data) {
		err = errNoLeader // its service has just begun
	}
	return err
}
