package service

import (
	"strconv"
	"strings"

	"broker/core"
)

// ref interprets the name of a job. A plain name is an id: the client's own (a Workq id, a Faktory jid), an id made by
// the broker, or the alias that Workq clients see. Other kinds of names have a prefix, so that the name of a removed
// job never finds another job: seq:12 is a number, H:host:12 is a Gearman handle of this broker, and id: marks an id
// that looks like another kind of name.
func (s *Service) ref(name string) (core.Ref, error) {
	if id, ok := strings.CutPrefix(name, "id:"); ok {
		return core.Ref{ID: id}, nil
	}
	if digits, ok := strings.CutPrefix(name, "seq:"); ok {
		seq, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || seq == 0 || digits[0] == '0' || digits[0] == '+' {
			return core.Ref{}, invalid("id", "%q is not seq: and a number", name)
		}
		return core.Ref{Seq: seq}, nil
	}
	if seq, ok := s.o.Handles.Parse([]byte(name)); ok {
		return core.Ref{Seq: seq}, nil
	}
	return core.Ref{ID: name}, nil
}
