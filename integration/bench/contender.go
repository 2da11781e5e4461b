package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/server"
)

// contender is a server in one configuration, loaded over one protocol.
type contender struct {
	name    string
	dialect dialect
	// share is the fraction of the jobs that it gets, so that a slow server does not dominate the run time.
	share float64
	start func(dir string) (*running, error)
	ours  bool
	// cluster says that it is several servers with a copy of every job each. Such a peer is compared with others of the
	// kind.
	cluster bool
	// only is the one contender that this peer is compared with; empty: all.
	only string
	// missing is the reason why it cannot be measured here, or empty.
	missing string
}

// meets reports that the results of c, which is the broker, are compared with those of the peer.
func (c contender) meets(peer contender) bool {
	return !peer.ours && (!peer.cluster || c.cluster) && (peer.only == "" || peer.only == c.name)
}

// protocol is the name of what it speaks: that of its group, but for NATS.
func (c contender) protocol(g group) string {
	if _, other := c.dialect.(nats); other {
		return "nats"
	}
	return g.name
}

// running is a started server.
type running struct {
	addr string // several with commas between: clients connect to them in turns
	pids []int
	http []string // where profiles of each process are taken; none: they are not
	stop func()

	leader int           // pid of the node that leads; 0: it is no cluster
	tail   func() string // the end of its log
}

// group is a set of contenders that are compared on the same kind of work: the broker and its peers.
type group struct {
	name       string
	contenders []contender
}

// programs are the paths of the programs: those that were built, and an earlier broker that the user may name.
type programs struct{ broker, faktory, nats, before string }

func groups(built programs, missing map[string]string, durabilities []string) []group {
	gearmand := contender{
		name: "gearmand", dialect: gearman{}, share: 1, missing: missing["gearmand"],
		start: func(dir string) (*running, error) { return peer(server.StartGearmand(dir)) },
	}
	reference := contender{
		name: faktoryName, dialect: faktory{}, share: 0.2, missing: missing["faktory"],
		start: func(dir string) (*running, error) { return peer(server.StartFaktory(built.faktory, dir, "")) },
	}
	bottom := contender{name: limitName, dialect: gearman{}, share: 1, start: startLimit}
	secureBottom := contender{name: limitTLSName, dialect: gearman{}, share: 0.5, only: tlsName, start: startLimitTLS}
	all := []group{
		{name: "gearman", contenders: []contender{gearmand, bottom, secureBottom}},
		{name: "workq", contenders: beanstalkds(missing)},
		{name: "faktory", contenders: []contender{reference}},
	}
	for i, p := range protocols() {
		for _, durability := range durabilities {
			subject := contender{
				name: "broker " + durability, dialect: p.dialect, share: 1, ours: true, missing: missing["broker"],
				start: func(dir string) (*running, error) { return broker(built.broker, dir, durability, p.addr) },
			}
			all[i].contenders = append(all[i].contenders, subject)
			if built.before != "" {
				all[i].contenders = append(all[i].contenders, earlier(built.before, subject, p)...)
			}
		}
		like, at := contender{dialect: p.dialect, share: 0.5}, layout{addr: p.addr}
		all[i].contenders = append(all[i].contenders, clusters(built, missing, like, at)...)
		if share > 0 && p.dialect == (gearman{}) {
			at.secure = true
			all[i].contenders = append(all[i].contenders, clusters(built, missing, like, at)...)
		}
	}
	all[0].contenders = append(all[0].contenders, contender{
		name: unixName, dialect: gearman{}, share: 1, ours: true, missing: missing["broker"],
		start: func(dir string) (*running, error) { return unixBroker(built.broker, dir) },
	}, contender{
		name: tlsName, dialect: gearman{}, share: 0.5, ours: true, missing: missing["broker"],
		start: func(dir string) (*running, error) { return tlsBroker(built.broker, dir) },
	}, contender{
		name: natsName, dialect: nats{}, share: 0.1, cluster: true, missing: missing["nats"],
		start: func(dir string) (*running, error) { return startNATS(built.nats, dir) },
	})
	overHTTP := group{name: httpName}
	for _, durability := range durabilities {
		overHTTP.contenders = append(overHTTP.contenders, contender{
			name: "broker " + durability, dialect: httpAPI{}, share: 0.1, ours: true, missing: missing["broker"],
			start: func(dir string) (*running, error) {
				return broker(built.broker, dir, durability, httpAddr)
			},
		})
	}
	overHTTP.contenders = append(overHTTP.contenders,
		clusters(built, missing, contender{dialect: httpAPI{}, share: 0.1}, layout{addr: httpAddr})...)
	return append(append(all, overHTTP), optionalGroups(built, missing, durabilities)...)
}

// earlier returns an earlier program of the broker, and today's a second time, which shows the noise.
func earlier(program string, subject contender, p protocol) []contender {
	before, again := subject, subject
	before.ours, before.only = false, subject.name
	durability := strings.TrimPrefix(subject.name, "broker ")
	before.name = "before " + durability
	before.start = func(dir string) (*running, error) { return broker(program, dir, durability, p.addr) }
	again.ours, again.only = false, subject.name
	again.name = "again " + durability
	return []contender{before, again}
}

// beanstalkds are beanstalkd in memory, and with every write synced.
func beanstalkds(missing map[string]string) []contender {
	return []contender{{
		name: "beanstalkd", dialect: beanstalk{}, share: 1, missing: missing["beanstalkd"],
		start: func(dir string) (*running, error) { return peer(server.StartBeanstalkd(dir)) },
	}, {
		name: "beanstalkd -f 0", dialect: beanstalk{}, share: 0.2, missing: missing["beanstalkd"],
		start: func(dir string) (*running, error) {
			return peer(server.StartBeanstalkd(dir, "-b", dir, "-f", "0"))
		},
	}}
}

// clusters are three nodes of the broker, and of an earlier one, with the clients at the leader, and at the others. If
// each node has a share of the processors, clients are at all of them in place of the leader.
func clusters(built programs, missing map[string]string, like contender, l layout) (all []contender) {
	names := map[placement]string{atLeader: clusterName, atFollowers: followersName, atAll: allName}
	ways := []placement{atLeader, atFollowers}
	if share > 0 {
		ways = []placement{atAll, atFollowers}
	}
	like.cluster, like.missing = true, missing["broker"]
	for _, at := range ways {
		l.at = at
		today, before := like, like
		today.ours, today.name = true, names[at]+l.suffix()
		today.start = l.starter(built.broker)
		all = append(all, today)
		if built.before != "" {
			before.only = today.name
			before.name = "before, " + strings.TrimPrefix(today.name, "broker ")
			before.start = l.starter(built.before)
			all = append(all, before)
		}
	}
	return all
}

func (l layout) starter(binary string) func(dir string) (*running, error) {
	return func(dir string) (*running, error) { return startCluster(binary, dir, l) }
}

// faktoryName is the Faktory server with its Redis.
const faktoryName = "faktory, redis"

// unixName is the broker whose clients use a unix socket.
const unixName = "broker none, unix"

func unixBroker(binary, dir string) (*running, error) {
	sockets, err := os.MkdirTemp("", "bench") // the path of a socket must be short
	if err != nil {
		return nil, err
	}
	r, err := broker(binary, dir, "none", func(b *server.BrokerServer) string {
		b.Gearman = unixPrefix + filepath.Join(sockets, "gearman")
		return b.Gearman
	})
	if err != nil {
		_ = os.RemoveAll(sockets)
		return nil, err
	}
	kill := r.stop
	r.stop = func() {
		kill()
		_ = os.RemoveAll(sockets)
	}
	return r, nil
}

func httpAddr(b *server.BrokerServer) string { return b.HTTP }

// httpName is the group of the HTTP API, which has no peers here.
const httpName = "http"

// clusterName is the contender of three brokers that are one.
const clusterName = "broker cluster of 3"

// followersName is the same with the clients at the nodes that follow.
const followersName = clusterName + ", at followers"

// allName is the same with the clients at all nodes.
const allName = clusterName + ", at all nodes"

// protocol is one of the broker's protocols.
type protocol struct {
	name    string
	dialect dialect
	addr    func(b *server.BrokerServer) string
	// ping is a request that is valid at any time, and pong is the beginning of its reply.
	ping, pong string
}

func protocols() []protocol {
	return []protocol{
		{
			"gearman",
			gearman{},
			func(b *server.BrokerServer) string { return b.Gearman },
			string(gearmanclient.Append(nil, gearmanclient.EchoReq, "x")), "\x00RES\x00\x00\x00\x11",
		},
		{
			"workq",
			workq{},
			func(b *server.BrokerServer) string { return b.Workq },
			"inspect server\r\n", "+OK 1\r\n",
		},
		{
			"faktory",
			faktory{},
			func(b *server.BrokerServer) string { return b.Faktory },
			"INFO\r\n", "$",
		},
	}
}

func peer(p *server.Peer, err error) (*running, error) {
	if err != nil {
		return nil, err
	}
	return &running{
		addr: p.Addr, pids: append([]int{p.PID()}, p.Helpers...), tail: p.Tail,
		stop: func() { p.Stop(10 * time.Second) },
	}, nil
}

func broker(binary, dir, durability string, addr func(*server.BrokerServer) string) (*running, error) {
	return launch(dir, server.BrokerOptions{Binary: binary, Durability: durability}, addr)
}

// launch starts a broker whose clients connect to addr.
func launch(dir string, o server.BrokerOptions, addr func(*server.BrokerServer) string) (*running, error) {
	o.Env = profiling()
	b, err := server.NewBroker(dir, o)
	if err != nil {
		return nil, err
	}
	at := addr(b) // it may choose another address
	if err := b.Start(); err != nil {
		if b.Process != nil {
			b.Kill()
		}
		return nil, err
	}
	return &running{addr: at, http: []string{b.HTTP}, pids: []int{b.PID()}, tail: b.Tail, stop: b.Process.Kill}, nil
}

// prepare builds the peers and records why any is missing. It skips peers that take no part.
func prepare(dir string, s *settings) (programs, map[string]string) {
	missing := make(map[string]string)
	note := func(name string, err error) {
		if err != nil && missing[name] == "" {
			missing[name] = err.Error()
		}
	}
	var p programs
	var err error
	p.broker, err = server.Broker(dir)
	note("broker", err)
	_, err = server.LookPath("gearmand")
	note("gearmand", err)
	_, err = server.LookPath("beanstalkd")
	note("beanstalkd", err)
	_, err = server.LookPath("redis-server")
	note("redis-server", err)
	note("faktory", err)
	if missing["faktory"] == "" && slices.Contains(s.groups, "faktory") && s.names(faktoryName) {
		p.faktory, err = server.BuildFaktory(dir, server.Faktory)
		note("faktory", err)
	}
	if slices.Contains(s.groups, "gearman") && s.names(natsName) {
		p.nats, err = server.BuildNATS(dir)
		note("nats", err)
	}
	return p, missing
}

// scratch returns an empty folder for one measurement and a function that removes it.
func scratch(under string) (string, func(), error) {
	dir, err := os.MkdirTemp(under, "run-")
	if err != nil {
		return "", nil, fmt.Errorf("scratch folder: %w", err)
	}
	remove := cleanup.add(func() { _ = os.RemoveAll(dir) }) // what cannot be removed lies in a temporary folder
	return filepath.Clean(dir), remove, nil
}
