package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"broker/integration/server"
)

// nodes is how many nodes the measured cluster has, all of them on this machine.
const nodes = 3

// share is how many processors each node of a cluster gets, such as 0.25; zero: there is no limit.
var share float64

// placement says to which nodes clients connect, in turns.
type placement int

const (
	atLeader placement = iota
	atFollowers
	atAll
)

// layout says how a cluster is loaded.
type layout struct {
	addr   func(*server.BrokerServer) string // the port of its clients
	at     placement
	secure bool // clients of Gearman use TLS

	optional *optionalProtocol // whose port is open in place of addr; nil: none
}

// startCluster starts a cluster of the broker.
func startCluster(binary, dir string, l layout) (*running, error) {
	var members []string
	ports := make(map[*server.BrokerServer]string)
	if l.optional != nil {
		l.addr = func(b *server.BrokerServer) string { return ports[b] }
	}
	for i := range nodes {
		at, err := server.FreeAddr()
		if err != nil {
			return nil, err
		}
		members = append(members, fmt.Sprintf("n%d=%s", i+1, at))
	}
	o, cert, err := l.options(binary, dir)
	if err != nil {
		return nil, err
	}
	var all []*server.BrokerServer
	stop := func() {
		for _, b := range all {
			if b.Process != nil {
				b.Kill()
			}
		}
	}
	for i := range nodes {
		id := fmt.Sprint("n", i+1)
		folder := filepath.Join(dir, id)
		if err := os.Mkdir(folder, 0o700); err != nil {
			stop()
			return nil, err
		}
		port := ""
		o.Args = []string{"--node", id, "--cluster", strings.Join(members, ",")}
		if l.optional != nil {
			var err error
			if port, err = server.FreeAddr(); err != nil {
				stop()
				return nil, err
			}
			o.Args = append(o.Args, l.optional.flag, port)
		}
		b, err := server.NewBroker(folder, o)
		if err == nil {
			all, ports[b] = append(all, b), port
			err = b.Spawn()
		}
		if err != nil {
			stop()
			return nil, err
		}
	}
	r, err := l.await(all)
	if err == nil && l.optional != nil && l.optional.prepare != nil {
		first, _, _ := strings.Cut(r.addr, ",")
		err = l.optional.prepare(first)
	}
	if err != nil {
		stop()
		return nil, err
	}
	if r.stop = stop; l.secure {
		if err := r.encrypt(dir, cert); err != nil {
			return nil, err
		}
	}
	return r, r.limit()
}

// suffix ends the name of what is loaded so.
func (l layout) suffix() string {
	if l.secure {
		return ", tls"
	}
	return ""
}

// options are those of each node. cert is the certificate of all, if clients use TLS.
func (l layout) options(binary, dir string) (o server.BrokerOptions, cert string, err error) {
	o = server.BrokerOptions{Binary: binary, Env: profiling()}
	if l.secure {
		o.Config, cert, err = gearmanTLS(dir, "broker")
	}
	return o, cert, err
}

// limit gives each process its share of the processors. If that fails, it stops them.
func (r *running) limit() error {
	if share == 0 {
		return nil
	}
	stop := r.stop
	for _, pid := range r.pids {
		s, err := server.NewShare(fmt.Sprintf("bench-%d", pid), share)
		if err == nil {
			before := stop
			stop = func() {
				before()
				s.Remove()
			}
			err = s.Add(pid)
		}
		if err != nil {
			stop()
			return err
		}
	}
	r.stop = stop
	return nil
}

// await waits until all nodes serve clients, and finds the leader.
func (l layout) await(all []*server.BrokerServer) (*running, error) {
	r := &running{}
	var addrs []string
	for i, b := range all {
		if err := b.WaitReady(server.ReadyWait); err != nil {
			return nil, err
		}
		r.pids, r.http = append(r.pids, b.PID()), append(r.http, b.HTTP)
		_, view, err := b.Get("/api/v1/cluster")
		if err != nil {
			return nil, err
		}
		leads := strings.HasPrefix(view, fmt.Sprintf(`{"leader":"n%d"`, i+1))
		if leads {
			r.leader, r.tail = b.PID(), b.Tail
		} else if err := awaitLink(b); err != nil {
			return nil, err
		}
		if l.at == atAll || leads == (l.at == atLeader) {
			addrs = append(addrs, l.addr(b))
		}
	}
	if r.leader == 0 {
		return nil, errors.New("no node of the cluster leads")
	}
	r.addr = strings.Join(addrs, ",")
	return r, nil
}

// awaitLink waits until a node that follows is linked to the leader. Before, it passes its clients on, as nodes of
// builds without links do with all of them.
func awaitLink(b *server.BrokerServer) error {
	for end := time.Now().Add(server.ReadyWait); ; {
		_, metrics, err := b.Get("/metrics")
		unlinked := err == nil && !strings.Contains(metrics, "\nbroker_cluster_links ")
		if unlinked || err == nil && strings.Contains(metrics, "\nbroker_cluster_links 1\n") {
			return nil
		}
		if time.Now().After(end) {
			return errors.Join(errors.New("a node that follows has no link to the leader"), err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
