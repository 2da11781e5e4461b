package gearman

import (
	"strings"

	"broker/core"
)

// maxNames limits the names that a connection caches.
const maxNames = 4096

// name is a function with its queue and type.
type name struct {
	function string
	queue    string // queue that its workers lease from; includes the namespace
	target   string // queue of submitted jobs: the same, unless a route changes it
	typ      string // type of submitted jobs; empty: same as target
	routed   bool
	tooLong  bool // the other fields are empty
}

// valid reports whether queues can have these names.
func (n *name) valid() bool {
	return !n.tooLong && len(n.queue) <= core.MaxQueueName && len(n.target) <= core.MaxQueueName
}

// names caches the functions that a connection uses, so that packets do not allocate strings.
type names struct {
	last  *name
	all   map[string]*name
	epoch uint64 // epoch of the routes
}

// of returns the name for a function. A name that is too long for a queue is not cached.
func (s *names) of(function []byte, o *Options) *name {
	if o.RouteEpoch != nil {
		if epoch := o.RouteEpoch(); epoch != s.epoch {
			*s = names{epoch: epoch}
		}
	}
	if len(o.Namespace)+len(function) > core.MaxQueueName {
		return &name{tooLong: true}
	}
	if s.last != nil && s.last.function == string(function) {
		return s.last
	}
	n := s.all[string(function)]
	if n == nil {
		n = newName(string(function), o)
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
		n.queue = o.Namespace + function
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

// functionOf is the function of a queue.
func (f *Frontend) functionOf(queue string) string {
	return strings.TrimPrefix(queue, f.opts.Namespace)
}

// owns reports whether a queue is in the namespace.
func (f *Frontend) owns(queue string) bool { return strings.HasPrefix(queue, f.opts.Namespace) }
