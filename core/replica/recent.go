package replica

import (
	"encoding/binary"
	"errors"

	"github.com/hashicorp/raft"

	"broker/core/internal/record"
)

// recent is an engine.Recent. It has the entries that are still in the log and applied to the store.
func (n *Node) recent(after uint64, each func(entry []byte) error) error {
	end := n.store.Load().Position().Index
	first, err := n.logs.FirstIndex()
	if err != nil {
		return err
	}
	var l raft.Log
	from := end + 1
	for ; from > max(first, 1); from-- {
		if err := n.logs.GetLog(from-1, &l); err != nil {
			return err
		}
		if l.Type == raft.LogCommand {
			number, err := numberOf(l.Data)
			if err != nil {
				return err
			}
			if number <= after {
				break
			}
		}
	}
	var parts assembly
	for i := from; i <= end; i++ {
		if err := n.logs.GetLog(i, &l); err != nil {
			return err
		}
		if l.Type != raft.LogCommand {
			continue
		}
		entry, err := parts.add(l.Data)
		if errors.Is(err, errParts) || err == nil && entry == nil {
			continue
		}
		if err == nil {
			err = each(entry)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// numberOf returns the number of the entry in replicated data, which is a whole entry or a part of one.
func numberOf(data []byte) (uint64, error) {
	if len(data) > 0 && data[0] == wholeEntry {
		return record.NumberOf(data[1:])
	}
	if len(data) == 0 || data[0] != partOfMany {
		return 0, record.ErrNewerFormat
	}
	_, n := binary.Uvarint(data[1:])
	if n <= 0 {
		return 0, record.ErrTruncated
	}
	number, n := binary.Uvarint(data[1+n:])
	if n <= 0 {
		return 0, record.ErrTruncated
	}
	return number, nil
}
