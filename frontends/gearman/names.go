package gearman

import (
	"strings"
	"unique"

	"broker/core"
)

// maxNames bounds how many names one connection remembers; beyond it starts anew.
const maxNames = 4096

// name is what a function is called elsewhere.
type name struct {
	function string
	queue    string // that workers of it serve: the namespace in front
	target   string // where jobs submitted for it go: the queue, unless a route says otherwise
	typ      string // of such jobs; empty: same as target
	routed   bool
}

// valid reports whether the broker can have such a queue.
func (n *name) valid() bool {
	return len(n.queue) <= core.MaxQueueName && len(n.target) <= core.MaxQueueName
}

// names remembers the functions that a connection has named, so that a packet costs no new string. Equal names of many
// connections share one.
type names struct {
	last  *name
	all   map[string]*name
	epoch uint64 // of the routes that they were made by
}

// of finds or makes the name for a function.
func (s *names) of(function []byte, o *Options) *name {
	if o.RouteEpoch != nil {
		if epoch := o.RouteEpoch(); epoch != s.epoch {
			*s = names{epoch: epoch}
		}
	}
	if s.last != nil && s.last.function == string(function) {
		return s.last
	}
	n := s.all[string(function)]
	if n == nil {
		n = newName(unique.Make(string(function)).Value(), o)
		if s.all == nil || len(s.all) >= maxNames {
			s.all = map[string]*name{}
		}
		s.all[n.function] = n
	}
	s.last = n
	return n
}

func newName(function string, o *Options) *name {
	n := &name{function: function, queue: function}
	if o.Namespace != "" {
		n.queue = unique.Make(o.Namespace + function).Value()
	}
	n.target = n.queue
	if o.Route != nil {
		if queue, typ := o.Route(function, function); queue != function || typ != function {
			n.target, n.typ, n.routed = queue, typ, true
		}
	}
	if !n.routed {
		n.typ = function
	}
	if n.typ == n.target {
		n.typ = ""
	}
	return n
}

// functionOf is what workers of a queue call it.
func (f *Frontend) functionOf(queue string) string { return strings.TrimPrefix(queue, f.o.Namespace) }

// owns reports whether a queue is one that this front-end's clients may see.
func (f *Frontend) owns(queue string) bool { return strings.HasPrefix(queue, f.o.Namespace) }
