package wiretap

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// kind is how a request is played.
type kind uint8

const (
	plain   kind = iota // played when the server has replied
	silent              // has no reply; played in its turn
	takes               // asks for a job; played when the server has replied with one
	submits             // like plain; the reply names the new job
	waits               // its reply waits for the work of others: played in its turn
	ignored             // not played: a report about the whole server
)

// request is one request of a client.
type request struct {
	verb    string
	kind    kind
	raw     []byte
	play    []byte   // what is played instead; nil: raw
	id      span     // of the job that the request names, in raw
	creates []string // ids that the client has chosen for new jobs
	names   []string // ids of existing jobs that it names, where clients choose them
}

// creating reports whether the request submits a job.
func (r *request) creating() bool { return r.kind == submits || len(r.creates) > 0 }

// reply is one reply, or a message that the server sends unasked.
type reply struct {
	raw   []byte
	push  bool     // sent unasked
	skip  bool     // a push that is not compared
	none  bool     // the reply to takes: no job
	key   string   // of a push: pushes with the same key keep their order
	id    span     // of the job that it names, in raw
	names []string // ids of jobs that it delivers, where clients choose them
}

// span is a part of a message.
type span struct{ from, to int }

func (s span) of(b []byte) string { return string(b[s.from:s.to]) }
func (s span) empty() bool        { return s.from == s.to }

// without is b without the part.
func (s span) without(b []byte) string { return string(b[:s.from]) + string(b[s.to:]) }

// replaced is b with other bytes in place of the part.
func (s span) replaced(b []byte, by string) []byte {
	return slices.Concat(b[:s.from], []byte(by), b[s.to:])
}

// protocol is what the comparison has to know of a protocol. Values are used on many goroutines and remember nothing.
type protocol interface {
	// request cuts the first request from in. n is zero if it has not come whole. raw is part of in.
	request(in []byte) (r request, n int, err error)
	// reply cuts the first reply from in. asked is the oldest request without its reply, nil if there is none.
	reply(in []byte, asked *request) (p reply, n int, err error)
	// normal is a reply without what may differ between servers, apart from ids.
	normal(asked *request, raw string) string
	// barrier is a request without effect, and its reply, for a protocol with silent requests; nil: there is none.
	barrier() (request, reply []byte)
	// withID is a request that names another job.
	withID(r *request, id string) []byte
}

// textual is what protocols without lengths around ids and without silent requests have in common.
type textual struct{}

func (textual) barrier() (req, rep []byte) { return nil, nil }

func (textual) withID(r *request, id string) []byte { return r.id.replaced(r.raw, id) }

// errFraming is returned for bytes that are not of the protocol. What follows them cannot be understood either.
var errFraming = errors.New("not of the protocol")

var protocols = map[string]protocol{
	"gearman": gearman{}, "faktory": faktory{}, "workq": workq{}, "beanstalkd": beanstalkd{}, "qless": qless{},
}

// Protocols are the names of the protocols.
func Protocols() []string { return slices.Sorted(maps.Keys(protocols)) }

// CheckProtocol is an error for any other name.
func CheckProtocol(name string) error {
	if _, known := protocols[name]; !known {
		return fmt.Errorf("protocol %q is not one of %s", name, strings.Join(Protocols(), ", "))
	}
	return nil
}

// maxMessage bounds one request or reply. Larger ones end the comparison of their connection.
const maxMessage = 64 << 20
