package service

import (
	"encoding/json"
	"slices"

	"broker/core"
)

// The service keeps its own lists in the store as rings of meta entries: the value with number n has the entry n modulo
// the size.

// readRing returns the values of a ring. name is the name of the entry for a number.
func (s *Service) readRing(size int, name func(number uint64) string) [][]byte {
	return slices.DeleteFunc(s.readSlots(size, name), func(value []byte) bool { return value == nil })
}

// readSlots returns the value of each place of a ring; nil: it has none.
func (s *Service) readSlots(size int, name func(number uint64) string) (values [][]byte) {
	c := s.openUnlisted()
	defer c.Close()
	ops := make([]core.Op, size)
	for i := range ops {
		ops[i] = &core.ReadMeta{Name: name(uint64(i))}
	}
	for _, r := range c.AskAll(ops...) {
		values = append(values, r.Data)
	}
	return values
}

// writeMeta stores a value as JSON and returns its commit; zero if the store has failed, which the change itself
// reports.
func (c *session) writeMeta(name string, value any) core.Commit {
	r, err := c.ask(&core.WriteMeta{Entries: []core.MetaEntry{{Name: name, Value: toJSON(value)}}})
	if err != nil {
		return 0
	}
	return r.Commit
}

// toJSON encodes a value that has only members which always can be encoded, such as text and numbers.
func toJSON(value any) []byte {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return b
}
