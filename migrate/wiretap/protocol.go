package wiretap

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// kind decides how a request is played.
type kind uint8

const (
	plain   kind = iota // played when the server has replied
	silent              // has no reply; played when it arrives
	takes               // asks for a job; played when the server has replied with one
	submits             // like plain; the reply names the new job
	waits               // its reply waits for other clients; played when it arrives
	ignored             // not played: a report about the whole server
)

// request is one request of a client.
type request struct {
	verb    string
	kind    kind
	raw     []byte
	play    []byte   // bytes to play instead; nil: raw
	poll    []byte   // for takes: bytes that ask for a job without waiting; nil: the protocol has none
	id      span     // id of the job that the request names, in raw
	creates []string // ids that the client has chosen for new jobs
	names   []string // ids of existing jobs that it names, if clients choose ids
	ends    bool     // it ends the job that it names
	frees   bool     // it returns the job that it names to its queue
	sleeps  bool     // the client waits for a job after the last takes

	// state is the name of the connection's state that the request sets; empty: it sets none. A new connection of the
	// same client repeats the last request of each name. everyone is the state of all connections.
	state    string
	everyone bool
}

// creating reports whether the request submits a job, and its reply says so.
func (r *request) creating() bool { return r.kind == submits || len(r.creates) > 0 && r.kind != waits }

// reply is a reply or an unsolicited message of the server.
type reply struct {
	raw   []byte
	push  bool     // unsolicited
	skip  bool     // a push that is not compared
	none  bool     // the reply to takes: no job
	key   string   // for pushes: pushes with the same key keep their order
	id    span     // id of the job that it names, in raw
	names []string // ids of jobs that it delivers, if clients choose ids
}

// span is a part of a message.
type span struct{ from, to int }

func (s span) of(b []byte) string { return string(b[s.from:s.to]) }
func (s span) empty() bool        { return s.from == s.to }

// without returns b without the part.
func (s span) without(b []byte) string { return string(b[:s.from]) + string(b[s.to:]) }

// replaced returns b with other bytes in place of the part.
func (s span) replaced(b []byte, by string) []byte {
	return slices.Concat(b[:s.from], []byte(by), b[s.to:])
}

// protocol describes a protocol for the comparison. Values have no state; many goroutines use them. After an error,
// such as wire.ErrFraming, the rest of the input cannot be parsed either. A request or reply of more than
// wire.MaxMessage bytes ends the comparison of its connection.
type protocol interface {
	// request cuts the first request from in. n is zero if it is incomplete. raw is part of in.
	request(in []byte) (r request, n int, err error)
	// reply cuts the first reply from in. asked is the oldest request without a reply; nil if there is none.
	reply(in []byte, asked *request) (p reply, n int, err error)
	// normal removes allowed differences between servers from a reply, except ids.
	normal(asked *request, raw string) string
	// barrier is a request without effect, and its reply, for a protocol with silent requests; nil: none.
	barrier() (request, reply []byte)
	// withID returns a request with another job's id.
	withID(r *request, id string) []byte
}

// textual implements the common part of protocols whose messages contain no lengths that depend on ids, and that have
// no silent requests.
type textual struct{}

func (textual) barrier() (req, rep []byte) { return nil, nil }

func (textual) withID(r *request, id string) []byte { return r.id.replaced(r.raw, id) }

var protocols = map[string]protocol{
	"gearman": gearman{}, "faktory": faktory{}, "workq": workq{}, "beanstalk": beanstalk{}, "qless": qless{},
}

// Protocols are the names of the protocols.
func Protocols() []string { return slices.Sorted(maps.Keys(protocols)) }

// ProtocolNamed returns the name of a protocol. beanstalkd, which older recordings name, is beanstalk.
func ProtocolNamed(name string) string {
	if name == "beanstalkd" {
		return "beanstalk"
	}
	return name
}

// CheckProtocol is an error for any other name.
func CheckProtocol(name string) error {
	if _, known := protocols[name]; !known {
		return fmt.Errorf("protocol %q is not one of %s", name, strings.Join(Protocols(), ", "))
	}
	return nil
}
