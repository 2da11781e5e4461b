package replica

import (
	"cmp"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"broker/core/clock"
	"broker/core/internal/record"
)

// Options describe a node.
type Options struct {
	ID      string
	Members []Member // of a new cluster, this one included
	Join    bool     // the cluster exists: never found one

	Dir      string       // of the broker; the store is in it
	Listener net.Listener // on which the other members call
	TLS      *tls.Config  // for calls in both directions; nil: none

	ElectionTimeout time.Duration // without a word of the leader; zero: 0.5 s
	MaxLogBytes     uint64        // the log is cut to half of this when it is larger; zero: 64 MiB
	MinFreeDisk     uint64        // a leader with less free disk space, in bytes, hands the lead over; zero: never
	Version         string        // of the program, for the others to see

	CommitLeases bool // jobs are handed out once their lease is committed, and no reply goes by a clock

	Clock clock.Monotonic // nil: the machine's

	// Client is called with a connection that another member passes on: of a client at the given address, for the front-end
	// of that name. It owns the connection. Any goroutine.
	Client func(conn net.Conn, frontend, client string)

	// Content names what a metadata entry of the front-ends is part of, if users would miss it; else it returns an empty text. nil: none.
	Content func(name string) string

	// LeaderChanged is called when another node leads, or none. Any goroutine; it must not block.
	LeaderChanged func()

	// Log gets what an operator wants to know. Any goroutine.
	Log func(level slog.Level, text string, fields ...any)

	flushEntries uint64               // tests flush earlier; zero: defaultFlush
	beforeWrite  func()               // tests delay writes of the log; nil: none
	hangFor      time.Duration        // tests have less patience; zero: hangFor
	interrupt    func(step int) error // tests end the founding of a cluster after a step of it
	newestFormat int                  // that this node says it reads; tests make it an older program's
}

// Member is a node and the address at which the others call it.
type Member struct{ ID, Address string }

func (m Member) String() string { return m.ID + "=" + m.Address }

// listText is a list of members in the order of their ids.
func listText(all []Member) string {
	texts := make([]string, len(all))
	for i, m := range all {
		texts[i] = m.String()
	}
	slices.Sort(texts)
	return strings.Join(texts, ",")
}

// find returns the member with an id.
func find(all []Member, id string) (Member, bool) {
	i := slices.IndexFunc(all, func(m Member) bool { return m.ID == id })
	if i < 0 {
		return Member{}, false
	}
	return all[i], true
}

// defaultElection is how long a follower waits for its leader.
const defaultElection = 500 * time.Millisecond

// defaultMaxLog bounds the log. A follower that lags behind by more than half of it gets a copy of the store.
const defaultMaxLog = 64 << 20

// defaultFlush is after how many entries the store is flushed. What is not is applied again after a crash, which takes about 30 µs an
// entry; when all nodes have crashed, nobody is served before.
const defaultFlush = 10_000

func (o Options) withDefaults() Options {
	o.flushEntries = cmp.Or(o.flushEntries, defaultFlush)
	o.hangFor = cmp.Or(o.hangFor, hangFor)
	if o.ElectionTimeout <= 0 {
		o.ElectionTimeout = defaultElection
	}
	if o.MaxLogBytes == 0 {
		o.MaxLogBytes = defaultMaxLog
	}
	if o.newestFormat == 0 {
		o.newestFormat = record.NewestFormat
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.LeaderChanged == nil {
		o.LeaderChanged = func() {}
	}
	if o.Client == nil {
		o.Client = func(conn net.Conn, _, _ string) { _ = conn.Close() }
	}
	if o.Log == nil {
		o.Log = func(slog.Level, string, ...any) {}
	}
	return o
}

// Errors that callers distinguish.
var (
	ErrNoLeader   = errors.New("the cluster has no leader now")
	ErrNotLeader  = errors.New("this node does not lead")
	ErrNotMember  = errors.New("no such node in the cluster")
	ErrRemoved    = errors.New("this node was removed from the cluster")
	ErrListDiffer = errors.New("the lists of members differ")

	ErrVersionsDiffer = errors.New("a new cluster needs nodes of one version")
)
