package service

import (
	"strconv"
	"strings"

	"broker/core"
)

// ref finds what a job name means. A bare name is an id: the client's own (a Workq id, a Faktory jid), the one that the
// broker made, or the alias that Workq clients see. Other kinds of name say so, so that no name of a job that is gone
// finds another one: seq:12 is a number, H:host:12 a Gearman handle of this broker, and id: stands before an id that would
// be taken for something else.
func (s *Service) ref(name string) (core.Ref, error) {
	if id, ok := strings.CutPrefix(name, "id:"); ok {
		return core.Ref{ID: id}, nil
	}
	if digits, ok := strings.CutPrefix(name, "seq:"); ok {
		seq, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || seq == 0 || digits[0] == '0' || digits[0] == '+' {
			return core.Ref{}, invalid("path.id", "%q is not seq: and a number", name)
		}
		return core.Ref{Seq: seq}, nil
	}
	if seq, ok := s.o.Handles.Parse([]byte(name)); ok {
		return core.Ref{Seq: seq}, nil
	}
	return core.Ref{ID: name}, nil
}
