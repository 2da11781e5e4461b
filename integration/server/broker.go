package server

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// BrokerOptions of a broker. The zero value is the default configuration.
type BrokerOptions struct {
	Binary       string
	Durability   string   // empty: the default
	Password     string   // empty: none
	HTTPPassword string   // password of the HTTP API, which is in Config; empty: Password
	Config       string   // content of a settings file; empty: no file
	Args         []string // more arguments of serve
	Env          []string // added to the environment
}

// ReadyWait is how long Start waits. It is long because the machine may be busy.
const ReadyWait = 5 * time.Minute

// BrokerServer is a broker that keeps its ports and data over restarts.
type BrokerServer struct {
	*Process

	Workq, Gearman, Faktory, HTTP string // addresses
	Data                          string // store folder

	opts BrokerOptions
	dir  string
}

// NewBroker creates a broker with free ports and with its data and log in dir. Start starts it.
func NewBroker(dir string, o BrokerOptions) (*BrokerServer, error) {
	b := &BrokerServer{opts: o, dir: dir, Data: filepath.Join(dir, "data")}
	for _, addr := range []*string{&b.Workq, &b.Gearman, &b.Faktory, &b.HTTP} {
		free, err := FreeAddr()
		if err != nil {
			return nil, err
		}
		*addr = free
	}
	return b, nil
}

// Use makes later starts run another program.
func (b *BrokerServer) Use(binary string) { b.opts.Binary = binary }

// Env adds to the environment of later starts.
func (b *BrokerServer) Env(more ...string) { b.opts.Env = append(b.opts.Env, more...) }

// Argv is the broker's command line.
func (b *BrokerServer) Argv() []string {
	argv := []string{b.opts.Binary, "serve"}
	if b.opts.Config != "" {
		argv = append(argv, "--config", b.configPath())
	}
	argv = append(argv, "--data", b.Data, "--workq", b.Workq, "--gearman", b.Gearman, "--faktory", b.Faktory, "--http",
		b.HTTP)
	if b.opts.Durability != "" {
		argv = append(argv, "--durability", b.opts.Durability)
	}
	if b.opts.Password != "" {
		argv = append(argv, "--password", b.opts.Password)
	}
	return append(argv, b.opts.Args...)
}

func (b *BrokerServer) configPath() string { return filepath.Join(b.dir, "broker.toml") }

// Start starts the process and waits until it is ready. It may be called again after Kill or Stop.
func (b *BrokerServer) Start() error {
	if err := b.Spawn(); err != nil {
		return err
	}
	return b.WaitReady(ReadyWait)
}

// Spawn starts the process without waiting. The previous process must have ended, because nothing would stop it any
// more.
func (b *BrokerServer) Spawn() error {
	if b.Process != nil && !b.Exited() {
		return fmt.Errorf("start the broker: %w", errStillRunning)
	}
	if b.opts.Config != "" {
		if err := os.WriteFile(b.configPath(), []byte(b.opts.Config), 0o600); err != nil {
			return err
		}
	}
	env := b.opts.Env
	if !strings.Contains(b.opts.Config, "min_free_disk") {
		// Other programs may fill the disk of the tests.
		env = append([]string{"BROKER_MIN_FREE_DISK=0"}, env...)
	}
	p, err := Launch(Spec{Name: "broker", Argv: b.Argv(), Env: env, Dir: b.dir, Logs: b.dir})
	if err != nil {
		return err
	}
	b.Process = p
	return nil
}

// WaitReady waits until /readyz reports that the broker is ready.
func (b *BrokerServer) WaitReady(atMost time.Duration) error {
	deadline := time.Now().Add(atMost)
	for {
		status, body, err := b.Get("/readyz")
		if err == nil && status == http.StatusOK {
			return nil
		}
		if b.Exited() {
			return fmt.Errorf("broker exited before it was ready:\n%s", b.Tail())
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("broker not ready after %v: %d %s (%w)\n%s", atMost, status, body, err, b.Tail())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Authorize adds the password to a request to the HTTP port.
func (b *BrokerServer) Authorize(r *http.Request) {
	if password := cmp.Or(b.opts.HTTPPassword, b.opts.Password); password != "" {
		r.SetBasicAuth("", password)
	}
}

// Get sends a GET request to the broker's HTTP port.
func (b *BrokerServer) Get(path string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.HTTP+path, nil)
	if err != nil {
		return 0, "", err
	}
	b.Authorize(req)
	// One connection per request: a kept-alive one may lead to a broker that was killed meanwhile.
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }() // nothing was written
	b2, err := io.ReadAll(resp.Body)
	return resp.StatusCode, strings.TrimSpace(string(b2)), err
}
