package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"broker/integration/server"
)

// nodes is how many nodes the measured cluster has, all of them on this machine.
const nodes = 3

// startCluster starts a cluster of the broker; the clients connect to its leader.
func startCluster(binary, dir string, addr func(*server.BrokerServer) string) (*running, error) {
	var members []string
	for i := range nodes {
		at, err := server.FreeAddr()
		if err != nil {
			return nil, err
		}
		members = append(members, fmt.Sprintf("n%d=%s", i+1, at))
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
		b, err := server.NewBroker(folder, server.BrokerOptions{
			Binary: binary, Args: []string{"--node", id, "--cluster", strings.Join(members, ",")}, Env: profiling(),
		})
		if err == nil {
			all = append(all, b)
			err = b.Spawn()
		}
		if err != nil {
			stop()
			return nil, err
		}
	}
	r := &running{stop: stop}
	for i, b := range all {
		if err := b.WaitReady(server.ReadyWait); err != nil {
			stop()
			return nil, err
		}
		r.pids = append(r.pids, b.PID())
		_, view, err := b.Get("/api/v1/cluster")
		if err != nil {
			stop()
			return nil, err
		}
		if strings.HasPrefix(view, fmt.Sprintf(`{"leader":"n%d"`, i+1)) {
			r.addr, r.http, r.tail = addr(b), b.HTTP, b.Tail
		}
	}
	if r.addr == "" {
		stop()
		return nil, errors.New("no node of the cluster leads")
	}
	return r, nil
}
