package config

import "time"

// Config holds every setting. The toml tag is the last part of its path; the doc tag is its description in
// docs/settings.md; the unit tag is the unit of a number without one, where the type is a duration; marks the settings
// that control access, which a reload changes together or not at all.
type Config struct {
	Data             string        `toml:"data" doc:"folder of the store"`
	Durability       string        `toml:"durability" doc:"sync: changes are on disk before they are acknowledged; relaxed: they are on disk within sync_interval; none: memory only"`
	SyncInterval     time.Duration `toml:"sync_interval" doc:"with durability relaxed: the longest time until an acknowledged change is on disk"`
	CacheBytes       Size          `toml:"cache_bytes" doc:"memory for the bodies of recent jobs; older bodies are read from the store when a worker takes the job"`
	DefaultLease     time.Duration `toml:"default_lease" doc:"lease of a job that sets none, for Workq and Faktory workers"`
	PoisonAfter      int           `toml:"poison_after" doc:"leases in a row that end without a reply from the worker (lost connection, expired lease) after which a job goes to the dead set; 0: no limit; jobs with a limit of attempts ignore it"`
	MinFreeDisk      Size          `toml:"min_free_disk" doc:"new jobs are refused while the disk of the store has less free space than this; 0: never"`
	DrainRefusesJobs bool          `toml:"drain_rejects_new_jobs" doc:"while draining (SIGUSR1, POST /api/v1/drain), refuse new jobs too"`
	EventLoops       int           `toml:"event_loops" doc:"threads that serve connections; 0: one per processor"`
	ExitAfterFailure time.Duration `toml:"exit_after_failure" doc:"after the store has failed or hung, the broker refuses changes and answers reads for this long and exits with status 1, so that a supervisor starts it again; 0s: it never exits; ignored in a cluster, where other nodes take over"`
	BindRetry        time.Duration `toml:"bind_retry" doc:"at start, how long to retry while another process holds an address or the store; 0s: fail at once"`

	Log       Log       `toml:"log"`
	HTTP      HTTP      `toml:"http"`
	Workq     Workq     `toml:"workq"`
	Gearman   Gearman   `toml:"gearman"`
	Faktory   Faktory   `toml:"faktory"`
	Qless     Qless     `toml:"qless"`
	Conveyor  Conveyor  `toml:"conveyor"`
	Beanstalk Beanstalk `toml:"beanstalk"`
	SQS       SQS       `toml:"sqs"`
	Limits    Limits    `toml:"limits"`
	Tracing   Tracing   `toml:"tracing"`
	Cluster   Cluster   `toml:"cluster"`
	Archive   Archive   `toml:"archive"`
	Routes    []Route   `toml:"route"`
	// Throttles are the limits of queues: a table of settings for each, in JSON. The program checks them, not this
	// package.
	Throttles map[string][]byte `toml:"throttles"`

	QueueLimits []QueueLimit `toml:"queue_limit"`
	Sharings    []Sharing    `toml:"sharing"`

	QueuePolicies []Policy `toml:"queue_policy"`
	TypePolicies  []Policy `toml:"type_policy"`

	KeepDone map[string]KeepDone `toml:"keep_done"`
	Crons    []Cron              `toml:"cron"`

	Principals []Principal `toml:"principal"`

	Pushes []Push `toml:"push"`

	sources map[string]string // see Source
}

// Log configures the log, which is written to standard error.
type Log struct {
	Level  string `toml:"level" doc:"debug, info, warn or error"`
	Format string `toml:"format" doc:"console: readable text; json: one object per line; auto: console on a terminal, otherwise json"`
}

// HTTP is the port of the console, the API, health checks and metrics.
type HTTP struct {
	Listen      Addresses `toml:"listen" doc:"host:port, unix:/path, or off; an address that other hosts can reach requires a password or tls_client_ca"`
	Allow       Networks  `toml:"allow" doc:"addresses and networks whose clients may connect; empty: all"`
	TLSCert     string    `toml:"tls_cert" doc:"certificate chain in PEM; with tls_key it makes the port accept TLS only"`
	TLSKey      string    `toml:"tls_key" doc:"private key in PEM"`
	TLSClientCA string    `toml:"tls_client_ca" doc:"CA certificates in PEM; clients must present a certificate signed by one of them"`
	MaxBody     Size      `toml:"max_body" doc:"largest request with jobs or results"`
	Principal   string    `toml:"principal" doc:"principal of clients without credentials, if principals are configured; empty: they are refused"`
	Profiling   bool      `toml:"profiling" doc:"serve Go profiles of the process under /debug/pprof/"`
	TraceURL    string    `toml:"trace_url" doc:"address of a trace in the tracing system, with {trace} for its id, such as https://tempo.example/trace/{trace}; the console links to it"`
	Password    string    `toml:"password" doc:"password for everything over HTTP except health checks and the documentation; a value that starts with a slash names a file"`
}

// HTTPLocked reports that HTTP admits no clients, because Faktory clients need a password but no setting protects HTTP.
// HTTP does not accept Faktory's password: an eavesdropper can try to guess it from Faktory's hash, and HTTP would give
// him all rights.
func (c *Config) HTTPLocked() bool {
	return c.Faktory.Password != "" && c.HTTP.Password == "" && c.HTTP.TLSClientCA == "" && len(c.Principals) == 0
}

// Protocol holds the settings that all protocol front-ends have in common.
type Protocol struct {
	Listen         Addresses `toml:"listen" doc:"host:port or unix:/path, or several separated by commas, or off"`
	Namespace      string    `toml:"namespace" doc:"prefix of this protocol's queues, invisible to its clients; empty: queues are shared with the other protocols"`
	MaxBody        Size      `toml:"max_body" doc:"largest job body that clients may send"`
	MaxConnections int       `toml:"max_connections" doc:"limit of open connections; 0: no limit"`
	Principal      string    `toml:"principal" doc:"principal of clients without credentials, if principals are configured; empty: they have no rights"`
	Allow          Networks  `toml:"allow" doc:"addresses and networks whose clients may connect, such as 10.1.0.0/16 (in the environment separated by commas); empty: all; clients on unix sockets always may"`
	TLSCert        string    `toml:"tls_cert" doc:"certificate chain in PEM; with tls_key it makes the port accept TLS only"`
	TLSKey         string    `toml:"tls_key" doc:"private key in PEM"`
	TLSClientCA    string    `toml:"tls_client_ca" doc:"CA certificates in PEM; clients must present a certificate signed by one of them"`
}

// Workq is the Workq port.
type Workq struct {
	Protocol
}

// Gearman is the Gearman port.
type Gearman struct {
	Protocol
	JobRetries    int    `toml:"job_retries" doc:"attempts of a job before it fails for good; 0: no limit"`
	HandlePrefix  string `toml:"handle_prefix" doc:"prefix of job handles; empty: H: and the host name"`
	WorkerWakeup  int    `toml:"worker_wakeup" doc:"sleeping workers to wake for a job: 0: one per waiting job; -1: all; N: at most N"`
	Exceptions    bool   `toml:"exceptions" doc:"send exceptions also to clients that did not request them"`
	AllowShutdown bool   `toml:"allow_shutdown" doc:"any client may stop the broker with the text command shutdown"`
}

// Faktory is the Faktory port.
type Faktory struct {
	Protocol
	Password string `toml:"password" doc:"password for Faktory clients; a value that starts with a slash names a file; also read from FAKTORY_PASSWORD; HTTP is closed until http.password, http.tls_client_ca or principals are set too"`
	Flush    string `toml:"flush" doc:"jobs that FLUSH removes: faktory (jobs and batches of Faktory clients), all, or off"`
}

// Qless is the port for Qless clients. To them it looks like a Redis server.
type Qless struct {
	Protocol
	Password   string `toml:"password" doc:"password that clients send with AUTH; a value that starts with a slash names a file"`
	AllowFlush bool   `toml:"allow_flush" doc:"any client may remove all Qless data and jobs with FLUSHDB; for tests"`
}

// Conveyor is the port for Conveyor clients. To them it looks like a Redis server.
type Conveyor struct {
	Protocol
	Password string `toml:"password" doc:"password that clients send with AUTH; a value that starts with a slash names a file"`
}

// Beanstalk is the port for Beanstalk clients.
type Beanstalk struct {
	Protocol
}

// SQS is the port for clients of Amazon SQS.
type SQS struct {
	Protocol
	Account     string `toml:"account" doc:"account number in the URLs and ARNs of queues"`
	Region      string `toml:"region" doc:"region in the ARNs of queues"`
	URL         string `toml:"url" doc:"start of queue URLs, such as https://queues.example.com; empty: the host that the client has used"`
	MaxInFlight int    `toml:"max_in_flight" doc:"maximum of received but not deleted messages of a queue; 0: no limit"`
}

// Limits restrict the memory that one client can use.
type Limits struct {
	OutputBytes Size `toml:"output_bytes" doc:"bytes of output that may wait for a slow reader; 0: as much as the protocol's largest replies need"`
	BufferBytes Size `toml:"buffer_bytes" doc:"bytes of unread input and unsent output of all connections together, in shares of principals and addresses; 0: 1 GiB; at least four times the largest request"`
}

// Tracing sends spans of traced jobs to an OpenTelemetry collector.
type Tracing struct {
	Endpoint string `toml:"endpoint" doc:"URL of an OpenTelemetry collector, such as http://127.0.0.1:4318; spans of jobs with a sampled trace context are sent to its path /v1/traces; empty: no spans"`
	Service  string `toml:"service" doc:"service.name of the spans"`
}

// Route rewrites the queue and the type of a job at submission. The first route that matches wins.
type Route struct {
	From  string `toml:"from" doc:"protocol by which the job is submitted"`
	Match Target `toml:"match"`
	Set   Target `toml:"set"`
}

// Target holds the values that a route matches or sets. An empty field matches all values, or changes nothing.
type Target struct {
	Queue string `toml:"queue" doc:"queue of the job"`
	Type  string `toml:"type" doc:"type of the job"`
}

// AllQueues is the name in keep_done that stands for all queues without an entry of their own.
const AllQueues = "*"

// KeepDone sets how long the finished jobs of a queue stay readable.
type KeepDone struct {
	For   time.Duration `toml:"for" doc:"time that finished jobs are kept; 0: no limit"`
	Count int           `toml:"count" doc:"finished jobs that are kept, the newest ones; 0: no limit"`
}

// Size is a number of bytes. In settings it may have the unit KiB, MiB or GiB.
type Size int64

// Units of sizes.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
)

// Default returns the settings that apply when nothing is set.
func Default() Config {
	return Config{
		Data: "./data", Durability: "sync", SyncInterval: 100 * time.Millisecond,
		ExitAfterFailure: 30 * time.Second,
		CacheBytes:       64 * MiB, DefaultLease: 30 * time.Minute, PoisonAfter: 20, MinFreeDisk: 512 * MiB,
		Log:   Log{Level: "info", Format: "auto"},
		HTTP:  HTTP{Listen: tcp("127.0.0.1:7420"), MaxBody: 64 * MiB},
		Workq: Workq{Protocol: Protocol{Listen: tcp("127.0.0.1:9922"), MaxBody: MiB}},
		Gearman: Gearman{
			Protocol: Protocol{Listen: tcp("127.0.0.1:4730"), MaxBody: 64 * MiB},
		},
		Faktory: Faktory{
			Protocol: Protocol{Listen: tcp("127.0.0.1:7419"), MaxBody: 72 * MiB}, Flush: "faktory",
		},
		Cluster: Cluster{ElectionTimeout: 500 * time.Millisecond, LeaseCommit: LeaseAfter},
		Archive: Archive{Every: time.Second, BaseEvery: 24 * time.Hour, Keep: 7 * 24 * time.Hour, MaxQueue: 64 * MiB},
		Tracing: Tracing{Service: "broker"},
		Qless:   Qless{Protocol: Protocol{MaxBody: 16 * MiB}},

		Conveyor: Conveyor{Protocol: Protocol{MaxBody: 16 * MiB}},

		Beanstalk: Beanstalk{Protocol: Protocol{MaxBody: 65_535}},

		SQS: SQS{
			Protocol: Protocol{MaxBody: MiB}, Account: "000000000000", Region: "us-east-1",
			MaxInFlight: 120_000,
		},
	}
}
