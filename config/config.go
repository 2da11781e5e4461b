package config

import (
	"cmp"
	"time"
)

// Config is every setting. The toml tag is the last part of its path, the doc tag what check-config and the README tell
// of it; unit names what a bare number counts where the type is a span of time.
type Config struct {
	Data                string        `toml:"data" doc:"folder of the store"`
	Durability          string        `toml:"durability" doc:"sync: a positive reply leaves after its commit is on disk; relaxed: at once, the commit follows within sync_interval; none: memory only"`
	SyncInterval        time.Duration `toml:"sync_interval" doc:"with durability relaxed: for how long acknowledged changes may be lost when the machine fails"`
	CacheBytes          Size          `toml:"cache_bytes" doc:"memory for the bodies of recent jobs; older ones are read from the store when leased"`
	DefaultLease        time.Duration `toml:"default_lease" doc:"time to finish for a job that names none, in the hands of a worker that no connection guards"`
	MinFreeDisk         Size          `toml:"min_free_disk" doc:"new jobs are refused while the disk of the store has less free space than this; 0: never"`
	DrainRejectsNewJobs bool          `toml:"drain_rejects_new_jobs" doc:"while draining (SIGUSR1, POST /api/drain), refuse new jobs too"`
	EventLoops          int           `toml:"event_loops" doc:"threads that serve connections; 0: as many as there are processors"`
	BindRetry           time.Duration `toml:"bind_retry" doc:"at start, how long to retry while another process holds an address or the store; 0s: fail at once"`

	Log       Log                 `toml:"log"`
	HTTP      HTTP                `toml:"http"`
	Workq     Workq               `toml:"workq"`
	Gearman   Gearman             `toml:"gearman"`
	Faktory   Faktory             `toml:"faktory"`
	Limits    Limits              `toml:"limits"`
	Routes    []Route             `toml:"route"`
	Throttles map[string]Throttle `toml:"throttles"`
	Crons     []Cron              `toml:"cron"`
}

// Log says what is written to standard error.
type Log struct {
	Level  string `toml:"level" doc:"debug, info, warn or error"`
	Format string `toml:"format" doc:"console: for people; json: one object a line; auto: console on a terminal, else json"`
}

// HTTP is the port for health, metrics and numbers.
type HTTP struct {
	Listen      string   `toml:"listen" doc:"host:port, unix:/path, or off; on an address that other hosts reach only with a password"`
	Allow       []string `toml:"allow" doc:"addresses and networks whose clients are let in; empty: all"`
	TLSCert     string   `toml:"tls_cert" doc:"certificate chain in PEM; with tls_key: the port speaks TLS only"`
	TLSKey      string   `toml:"tls_key" doc:"private key in PEM"`
	TLSClientCA string   `toml:"tls_client_ca" doc:"clients must show a certificate that one of these authorities signed"`
	Profiling   bool     `toml:"profiling" doc:"serve Go's profiles of the process under /debug/pprof/"`
	Password    string   `toml:"password" doc:"asked of HTTP clients for more than health; empty: that of Faktory; if it starts with a slash it names a file"`
}

// HTTPPassword is what HTTP clients must know; empty: nothing.
func (c *Config) HTTPPassword() string { return cmp.Or(c.HTTP.Password, c.Faktory.Password) }

// Protocol is what all protocol front-ends have in common.
type Protocol struct {
	Listen         string   `toml:"listen" doc:"host:port or unix:/path, several with commas between, or off"`
	Namespace      string   `toml:"namespace" doc:"prefix of this front-end's queues, unseen by its clients; empty: queues are shared with the other protocols"`
	MaxBody        Size     `toml:"max_body" doc:"largest job"`
	MaxConnections int      `toml:"max_connections" doc:"connections at once; 0: no bound"`
	Allow          []string `toml:"allow" doc:"addresses and networks whose clients are let in, such as 10.1.0.0/16 (in the environment with commas between); empty: all; those on unix sockets always are"`
	TLSCert        string   `toml:"tls_cert" doc:"certificate chain in PEM; with tls_key: the port speaks TLS only"`
	TLSKey         string   `toml:"tls_key" doc:"private key in PEM"`
	TLSClientCA    string   `toml:"tls_client_ca" doc:"clients must show a certificate that one of these authorities signed"`
}

// Workq is the Workq port.
type Workq struct {
	Protocol
}

// Gearman is the Gearman port.
type Gearman struct {
	Protocol
	JobRetries    int    `toml:"job_retries" doc:"attempts a job has in all before it fails for good; 0: no limit"`
	HandlePrefix  string `toml:"handle_prefix" doc:"stands before the colon and number of a job handle; empty: H: and the host's name"`
	WorkerWakeup  int    `toml:"worker_wakeup" doc:"sleeping workers woken for a job: 0 as many as there are jobs, -1 all, N at most N"`
	Exceptions    bool   `toml:"exceptions" doc:"send exceptions to clients that did not ask for them too"`
	AllowShutdown bool   `toml:"allow_shutdown" doc:"let any client end the broker by the text command shutdown"`
}

// Faktory is the Faktory port.
type Faktory struct {
	Protocol
	Password string `toml:"password" doc:"asked of Faktory clients, and of HTTP clients if http.password is empty; if it starts with a slash it names a file; also read from FAKTORY_PASSWORD"`
	Flush    string `toml:"flush" doc:"what FLUSH removes: faktory (the jobs and batches of Faktory clients), all, or off"`
}

// Limits bound what one client can make the broker hold.
type Limits struct {
	OutputBytes Size `toml:"output_bytes" doc:"bytes that may wait for a client that does not read; 0: what the protocol's largest replies need"`
}

// Route rewrites the queue and the type of a job at submission. The first route that matches wins.
type Route struct {
	From  string `toml:"from" doc:"protocol by which the job is submitted"`
	Match Target `toml:"match"`
	Set   Target `toml:"set"`
}

// Target is what a route looks at and what it sets. An empty field matches everything, and changes nothing.
type Target struct {
	Queue string `toml:"queue" doc:"queue of the job"`
	Type  string `toml:"type" doc:"type of the job"`
}

// Throttle bounds how many jobs of a queue are in workers' hands.
type Throttle struct {
	Concurrency int           `toml:"concurrency" doc:"at once, over all workers"`
	Worker      int           `toml:"worker" doc:"at once, for one worker"`
	Timeout     time.Duration `toml:"timeout" unit:"s" doc:"a place comes free after so long even if its job goes on"`
}

// Size is a number of bytes; in settings also with KiB, MiB or GiB behind it.
type Size int64

// Sizes of text form.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
)

// Default is what is in force when nothing is set.
func Default() Config {
	return Config{
		Data: "./data", Durability: "sync", SyncInterval: 100 * time.Millisecond,
		CacheBytes: 64 * MiB, DefaultLease: 30 * time.Minute, MinFreeDisk: 512 * MiB,
		Log:   Log{Level: "info", Format: "auto"},
		HTTP:  HTTP{Listen: "127.0.0.1:7420"},
		Workq: Workq{Protocol: Protocol{Listen: "127.0.0.1:9922", MaxBody: MiB}},
		Gearman: Gearman{
			Protocol: Protocol{Listen: "127.0.0.1:4730", MaxBody: 64 * MiB},
		},
		Faktory: Faktory{
			Protocol: Protocol{Listen: "127.0.0.1:7419", MaxBody: 72 * MiB}, Flush: "faktory",
		},
	}
}
