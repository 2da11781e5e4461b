package service

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"broker/access"
	"broker/core"
)

// Earlier versions stored the keys in a ring of meta entries, without their owners.
const (
	earlierKeys = 8192
	earlierMeta = "http/key/"
)

// earlierKey is a stored key of an earlier version.
type earlierKey struct {
	Key  string       `json:"k"` // hash of the key and its owner
	Body string       `json:"b"` // hash of the submission
	At   core.Instant `json:"at"`
}

// loadEarlierKeys reads the keys of an earlier version. They count for no principal, and expire within a day.
func (s *Service) loadEarlierKeys() error {
	var gone []core.MetaEntry
	name := func(n uint64) string { return fmt.Sprintf("%s%04d", earlierMeta, n) }
	for i, value := range s.readSlots(earlierKeys, name) {
		if value == nil {
			continue
		}
		e := earlierKey{}
		if err := json.Unmarshal(value, &e); err != nil {
			return fmt.Errorf("read the idempotency keys: %w", err)
		}
		hash, err := hex.DecodeString(e.Key)
		body, err2 := hex.DecodeString(e.Body)
		u := &usedKey{at: e.At}
		if err != nil || err2 != nil || len(hash) != len(u.hash) || len(body) != len(u.body) {
			return fmt.Errorf("read the idempotency keys: %w", core.ErrInvalid)
		}
		if s.Now().Sub(e.At) >= keyFor {
			gone = append(gone, core.MetaEntry{Name: name(uint64(i))})
			continue
		}
		u.hash, u.body, u.holder = keyHash(hash), bodyHash(body), access.NamedHolder("", false)
		s.keys.pool.Restore(u.holder, 1)
		s.keys.add(u)
	}
	if len(gone) == 0 {
		return nil
	}
	c := s.openUnlisted()
	defer c.Close()
	_, err := c.ask(&core.WriteMeta{Entries: gone})
	return err
}
