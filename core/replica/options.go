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
	Members []Member // of a new cluster, including this node
	Join    bool     // the cluster exists; this node never founds one

	Dir      string       // of the broker; the store is in it
	Listener net.Listener // on which the other members call
	TLS      *tls.Config  // for calls in both directions; nil: none

	ElectionTimeout time.Duration // time without a message from the leader; zero: 0.5 s
	MaxLogBytes     uint64        // the log is cut to half of this when it is larger; zero: 64 MiB
	KeepLogBytes    uint64        // limit of the log while a member needs its entries; zero: 1 GiB or the store's size
	MinFreeDisk     uint64        // a leader with less free disk space, in bytes, transfers leadership; zero: never
	Version         string        // of the program, shown to other members

	CommitLeases bool // jobs are handed out once their lease is committed, and no reply relies on the clock

	Clock clock.Monotonic // nil: the system's clock

	// Client is called with a client's connection that another member forwards; client is the client's address,
	// frontend the name of the front-end. Client owns the connection. Any goroutine may call it.
	Client func(conn net.Conn, frontend, client string)

	// Content names the data that a metadata entry of the front-ends belongs to if users would miss it, otherwise it
	// returns an empty text. It may be nil.
	Content func(name string) string

	// LeaderChanged is called when the leader changes or is lost. Any goroutine may call it; it must not block.
	LeaderChanged func()

	// Linked reports whether the clients of this node, which follows, have a link to the leader. Any goroutine may call
	// it. Nil: they need none.
	Linked func() bool

	// Log gets messages for operators. Any goroutine may call it.
	Log func(level slog.Level, text string, fields ...any)

	flushEntries uint64               // for tests that flush earlier; zero: defaultFlush
	beforeWrite  func()               // for tests that delay writes of the log; may be nil
	writeTakes   func() time.Duration // for tests: how much longer a write of the log seems to take; may be nil
	checks       pace                 // for tests with fewer checks; zero: each second, slowChecks, leadChecks
	beforeCopy   func()               // for tests that delay a copy of the store; may be nil
	hangFor      time.Duration        // for tests with a shorter time; zero: hangFor
	interrupt    func(step int) error // for tests that interrupt the founding of a cluster after a step
	newestFormat int                  // newest format that this node claims to read; tests imitate an older program
}

// Member is a node and the address at which other members reach it.
type Member struct{ ID, Address string }

func (m Member) String() string { return m.ID + "=" + m.Address }

// listText formats a list of members in the order of their ids.
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

// minKeepLog is the least limit of a log that other members need.
const minKeepLog = 1 << 30

// defaultFlush is the number of entries after which the store is flushed. After a crash, entries that were not flushed
// are applied again, which takes about 30 µs per entry. If all nodes have crashed, clients wait for that.
const defaultFlush = 10_000

func (o Options) withDefaults() Options {
	o.flushEntries = cmp.Or(o.flushEntries, defaultFlush)
	o.hangFor = cmp.Or(o.hangFor, hangFor)
	o.checks = cmp.Or(o.checks, pace{checkEvery, slowChecks, leadChecks})
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
	if o.Linked == nil {
		o.Linked = func() bool { return true }
	}
	if o.Client == nil {
		o.Client = func(conn net.Conn, _, _ string) { _ = conn.Close() }
	}
	if o.Log == nil {
		o.Log = func(slog.Level, string, ...any) {}
	}
	return o
}

// ErrRemoved is the reason of Failed after another node has removed this one from the cluster.
var ErrRemoved = errors.New("this node was removed from the cluster")

// ErrNotMember means that a named node is no member.
var ErrNotMember = errors.New("no such node in the cluster")

var (
	errNoLeader       = errors.New("the cluster has no leader now")
	errStarting       = errors.New("it is starting")
	errNotLeader      = errors.New("this node does not lead")
	errListsDiffer    = errors.New("the lists of members differ")
	errEvenVoters     = errors.New("a new cluster has an odd number of voters")
	errVersionsDiffer = errors.New("a new cluster needs nodes of one version")
)
