package server

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const peerStart = 2 * time.Minute

// Peer is a running third-party server.
type Peer struct {
	*Process

	Addr string
	// Helpers are processes of the server whose CPU time and memory count as its own.
	Helpers []int
}

// Stop stops the server and its leftovers: a Faktory server that had to be killed leaves its Redis running.
func (p *Peer) Stop(atMost time.Duration) {
	p.Process.Stop(atMost)
	for _, pid := range p.Helpers {
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil &&
			strings.TrimSpace(string(name)) == "redis-server" {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
		}
	}
}

// LookPath finds a program. It also searches the folders of system daemons, which are not in every user's PATH.
func LookPath(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, exec.ErrNotFound)
}

// StartGearmand starts gearmand without a queue plug-in.
func StartGearmand(dir string, args ...string) (*Peer, error) {
	return startPeer("gearmand", dir, func(host, port string) []string {
		return append([]string{"--listen=" + host, "--port=" + port, "--log-file=stderr", "--verbose=ERROR"}, args...)
	})
}

// StartBeanstalkd starts beanstalkd; args may enable its binlog.
func StartBeanstalkd(dir string, args ...string) (*Peer, error) {
	return startPeer("beanstalkd", dir, func(host, port string) []string {
		return append([]string{"-l", host, "-p", port}, args...)
	})
}

// StartRedis starts a Redis server that writes nothing to disk, unless args say so.
func StartRedis(dir string, args ...string) (*Peer, error) {
	return startPeer("redis-server", dir, func(host, port string) []string {
		return append([]string{
			"--bind", host, "--port", port, "--dir", dir, "--save", "", "--appendonly", "no",
		}, args...)
	})
}

// StartPrometheus starts Prometheus with a configuration file; its data go to dir.
func StartPrometheus(dir, config string) (*Peer, error) {
	return startPeer("prometheus", dir, func(host, port string) []string {
		return []string{
			"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "data"),
			"--web.listen-address=" + host + ":" + port, "--log.level=warn",
		}
	})
}

func startPeer(name, dir string, args func(host, port string) []string) (*Peer, error) {
	path, err := LookPath(name)
	if err != nil {
		return nil, err
	}
	addr, err := FreeAddr()
	if err != nil {
		return nil, err
	}
	host, port := Split(addr)
	p, err := Launch(Spec{Name: name, Argv: append([]string{path}, args(host, port)...), Dir: dir, Logs: dir})
	if err != nil {
		return nil, err
	}
	if err := WaitListening(p, addr, peerStart); err != nil {
		p.Kill()
		return nil, err
	}
	return &Peer{Process: p, Addr: addr}, nil
}

// StartFaktory starts a Faktory server, which starts its own Redis.
func StartFaktory(binary, dir, password string) (*Peer, error) {
	if _, err := LookPath("redis-server"); err != nil {
		return nil, err
	}
	addr, err := FreeAddr()
	if err != nil {
		return nil, err
	}
	web, err := FreeAddr()
	if err != nil {
		return nil, err
	}
	for _, sub := range []string{"db", "config"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	argv := []string{
		binary, "-b", addr, "-w", web, "-e", "development", "-l", "warn",
		"-d", filepath.Join(dir, "db"), "-c", filepath.Join(dir, "config"),
	}
	p, err := Launch(Spec{
		Name: "faktory", Argv: argv, Env: []string{"FAKTORY_PASSWORD=" + password}, Dir: dir, Logs: dir,
	})
	if err != nil {
		return nil, err
	}
	if err := WaitListening(p, addr, peerStart); err != nil {
		p.Stop(peerStart)
		return nil, err
	}
	return &Peer{Process: p, Addr: addr, Helpers: Children(p.PID())}, nil
}
