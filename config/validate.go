package config

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Limits of settings. maxBody is that of package core.
const (
	maxBody       = GiB
	maxNamespace  = 64
	maxHandle     = 63
	maxEventLoops = 1024
	maxSync       = time.Minute
	maxBindRetry  = time.Hour

	maxPoisonAfter = 255
)

// problems lists the problems of c, except for settings whose value could not be read.
func (c *Config) problems(broken map[string]bool) []Problem {
	v := checker{broken: broken, taken: make(map[Address]string)}
	c.checkStore(&v)
	v.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	v.oneOf("log.format", c.Log.Format, "auto", "console", "json")
	off := c.HTTP.Listen.Off()
	for _, p := range c.WireProtocols() {
		v.protocol(p.Name, *p.Protocol)
		off = off && p.Listen.Off()
	}
	c.checkHTTP(&v)
	c.checkPrincipals(&v)
	if off {
		v.complain("workq.listen", "%s and http are all off: there is nothing to serve",
			strings.Join(allWireNames(), ", "))
	}
	c.checkGearman(&v)
	c.checkCluster(&v)
	c.checkArchive(&v)
	v.oneOf("faktory.flush", c.Faktory.Flush, "faktory", "all", "off")
	c.checkTracing(&v)
	c.checkSQS(&v)
	v.size("limits.output_bytes", c.Limits.OutputBytes, 0, 64*GiB)
	v.size("limits.buffer_bytes", c.Limits.BufferBytes, 0, 1024*GiB)
	for i, r := range c.Routes {
		v.route(fmt.Sprintf("route[%d]", i), r)
	}
	for _, queue := range slices.Sorted(maps.Keys(c.KeepDone)) {
		v.keepDone("keep_done."+queue, c.KeepDone[queue])
	}
	c.checkQueueLimits(&v)
	c.checkPushes(&v)
	return v.found
}

func (c *Config) checkStore(v *checker) {
	v.oneOf("durability", c.Durability, "sync", "relaxed", "none")
	if c.Data == "" && c.Durability != "none" {
		v.complain("data", "is empty")
	}
	v.duration("sync_interval", c.SyncInterval, time.Millisecond, maxSync)
	if c.DefaultLease < time.Second {
		v.complain("default_lease", "%v is less than 1s", c.DefaultLease)
	}
	v.count("poison_after", c.PoisonAfter, 0, maxPoisonAfter)
	v.size("cache_bytes", c.CacheBytes, 0, 1024*GiB)
	v.size("min_free_disk", c.MinFreeDisk, 0, 1<<20*GiB)
	v.count("event_loops", c.EventLoops, 0, maxEventLoops)
	if c.ExitAfterFailure < 0 {
		v.complain("exit_after_failure", "%v is negative", c.ExitAfterFailure)
	}
	v.duration("bind_retry", c.BindRetry, 0, maxBindRetry)
}

// checkHTTP prevents opening the port to other hosts by accident, because every client that can connect may change
// everything.
func (c *Config) checkHTTP(v *checker) {
	h := c.HTTP
	v.listen("http.listen", h.Listen)
	v.size("http.max_body", h.MaxBody, KiB, maxBody)
	web := strings.HasPrefix(h.TraceURL, "https://") || strings.HasPrefix(h.TraceURL, "http://")
	if h.TraceURL != "" && (!web || !strings.Contains(h.TraceURL, "{trace}")) {
		v.complain("http.trace_url", "%q is not a URL that begins with http:// or https:// and has {trace} in it", h.TraceURL)
	}
	v.certificate("http", Protocol{TLSCert: h.TLSCert, TLSKey: h.TLSKey, TLSClientCA: h.TLSClientCA})
	if c.HTTP.Password != "" || h.TLSClientCA != "" || len(c.Principals) > 0 && h.Principal == "" {
		return
	}
	for _, a := range h.Listen {
		if !a.Loopback() {
			v.complain("http.listen", "other hosts can reach %s: set http.password, http.tls_client_ca or principals",
				a)
		}
	}
}

func (c *Config) checkTracing(v *checker) {
	if c.Tracing.Endpoint == "" {
		return
	}
	u, err := url.Parse(c.Tracing.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		v.complain("tracing.endpoint", "%q is not a URL such as http://127.0.0.1:4318", c.Tracing.Endpoint)
	}
	if c.Tracing.Service == "" {
		v.complain("tracing.service", "is empty")
	}
}

func (c *Config) checkSQS(v *checker) {
	s := c.SQS
	v.count("sqs.max_in_flight", s.MaxInFlight, 0, 1<<31-1)
	if s.MaxBody > MiB {
		v.complain("sqs.max_body", "%v is more than 1 MiB, the most that clients can send", s.MaxBody)
	}
	if len(s.Account) != 12 || strings.Trim(s.Account, "0123456789") != "" {
		v.complain("sqs.account", "%q does not have 12 digits", s.Account)
	}
	v.word("sqs.region", s.Region, maxNamespace)
	if s.Region == "" || strings.ContainsAny(s.Region, ":/") {
		v.complain("sqs.region", "%q is not the name of a region", s.Region)
	}
	if u, err := url.Parse(s.URL); s.URL != "" &&
		(err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.HasSuffix(s.URL, "/")) {
		v.complain("sqs.url", "%q is not a URL such as https://queues.example.com", s.URL)
	}
}

func (c *Config) checkGearman(v *checker) {
	v.count("gearman.job_retries", c.Gearman.JobRetries, 0, 1<<31-1)
	v.count("gearman.worker_wakeup", c.Gearman.WorkerWakeup, -1, 1<<31-1)
	v.word("gearman.handle_prefix", c.Gearman.HandlePrefix, maxHandle)
}

// checker collects problems.
type checker struct {
	found  []Problem
	broken map[string]bool
	taken  map[Address]string // the setting that uses the address
}

func (v *checker) complain(setting, format string, args ...any) {
	if !v.broken[setting] {
		v.found = append(v.found, Problem{Setting: setting, Text: fmt.Sprintf(format, args...)})
	}
}

func (v *checker) oneOf(setting, value string, words ...string) {
	if !slices.Contains(words, value) {
		last := len(words) - 1
		v.complain(setting, "%q is not %s or %s", value, strings.Join(words[:last], ", "), words[last])
	}
}

func (v *checker) count(setting string, n, least, most int) {
	if n < least || n > most {
		v.complain(setting, "%d is not between %d and %d", n, least, most)
	}
}

func (v *checker) size(setting string, n, least, most Size) {
	if n < least || n > most {
		v.complain(setting, "%v is not between %v and %v", n, least, most)
	}
}

func (v *checker) duration(setting string, d, least, most time.Duration) {
	if d < least || d > most {
		v.complain(setting, "%v is not between %v and %v", d, least, most)
	}
}

// Bounds of a rate of pushes.
const (
	maxRate = 1_000_000
	minRate = 1.0 / (24 * 3600)
)

// rate checks a number a second; 0: no limit.
func (v *checker) rate(setting string, rate float64) {
	if rate != 0 && !(rate >= minRate && rate <= maxRate) {
		v.complain(setting, "%v is not between one a day and %d a second", rate, maxRate)
	}
}

// word checks a string that becomes part of a name on the wire.
func (v *checker) word(setting, text string, longest int) {
	if len(text) > longest {
		v.complain(setting, "is longer than %d bytes", longest)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		v.complain(setting, "%q contains a space or a control character", text)
	}
}

func (v *checker) protocol(name string, p Protocol) {
	v.listen(name+".listen", p.Listen)
	v.word(name+".namespace", p.Namespace, maxNamespace)
	v.size(name+".max_body", p.MaxBody, 1, maxBody)
	v.count(name+".max_connections", p.MaxConnections, 0, 1<<31-1)
	v.certificate(name, p)
}

func (v *checker) listen(setting string, addresses Addresses) {
	for _, a := range addresses {
		if other, twice := v.taken[a]; twice && !strings.HasSuffix(a.Address, ":0") {
			v.complain(setting, "%s is already used by %s", a, other)
			continue
		}
		v.taken[a] = setting
	}
}

// certificate loads the files, so that check-config finds the same errors as serve.
func (v *checker) certificate(name string, p Protocol) {
	switch {
	case p.TLSCert == "" && p.TLSKey == "":
		if p.TLSClientCA != "" {
			v.complain(name+".tls_client_ca", "requires tls_cert and tls_key")
		}
	case p.TLSCert == "":
		v.complain(name+".tls_cert", "is required with tls_key")
	case p.TLSKey == "":
		v.complain(name+".tls_key", "is required with tls_cert")
	default:
		if _, err := p.TLS(); err != nil {
			v.complain(name+".tls_cert", "%v", err)
		}
	}
}

func (v *checker) route(setting string, r Route) {
	v.oneOf(setting+".from", r.From, allWireNames()...)
	v.word(setting+".set.queue", r.Set.Queue, 255)
	if r.Match == (Target{}) {
		missing := "match.queue"
		if hasTypes(r.From) {
			missing += " or match.type"
		}
		v.complain(setting, "matches nothing: %s is missing", missing)
	}
	if r.Set == (Target{}) {
		v.complain(setting, "changes nothing: set.queue or set.type is missing")
	}
	if r.Match.Type != "" && !hasTypes(r.From) {
		v.complain(setting+".match.type", "only jobs of %s have a type of their own: use match.queue", typedNames())
	}
}

func (v *checker) keepDone(setting string, k KeepDone) {
	v.count(setting+".count", k.Count, 0, 1<<31-1)
	if k.For < 0 {
		v.complain(setting+".for", "%v is negative", k.For)
	}
	if k == (KeepDone{}) {
		v.complain(setting, "keeps nothing: for or count is missing")
	}
}
