package config

import (
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/textproto"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Push is a receiver to which the broker pushes the jobs of some queues.
type Push struct {
	Name        string        `toml:"name" doc:"name in lists and metrics"`
	Queues      []string      `toml:"queues" doc:"in the order in which they are emptied"`
	URL         string        `toml:"url" doc:"https, or http on loopback"`
	Concurrency int           `toml:"concurrency" doc:"requests at the same time"`
	Rate        float64       `toml:"rate_per_s" doc:"requests a second; 0: no limit"`
	Timeout     time.Duration `toml:"timeout" unit:"s" doc:"of a request"`
	Secret      string        `toml:"secret" doc:"signs the requests; if it starts with a slash it names a file"`
	CA          string        `toml:"ca" doc:"CA certificates in PEM, in place of those of the system"`

	Headers map[string]string `toml:"headers"` // headers of each request, by canonical name
	CAPEM   []byte            `toml:"-"`       // content of CA
}

// Defaults and bounds of a Push.
const (
	defaultPushConcurrency = 10
	defaultPushTimeout     = 30 * time.Second
	maxPushConcurrency     = 1_000
	maxPushTimeout         = time.Hour
	maxPushName            = 64
	maxQueueName           = 512
)

// pushes reads [[push]].
func (l *loader) pushes(v any, source string, c *Config) {
	for i, table := range l.tables("push", v, source) {
		prefix, p := fmt.Sprintf("push[%d].", i), Push{Concurrency: defaultPushConcurrency, Timeout: defaultPushTimeout}
		if headers := take(table, "headers"); headers != nil {
			rows, ok := headers.(map[string]any)
			if !ok {
				l.complain(prefix+"headers", "not a table (%s)", source)
			}
			p.Headers = make(map[string]string, len(rows))
			for _, name := range slices.Sorted(maps.Keys(rows)) {
				value, ok := rows[name].(string)
				if !ok {
					l.complain(prefix+"headers."+name, "%v is not a string (%s)", rows[name], source)
				}
				p.Headers[textproto.CanonicalMIMEHeaderKey(name)] = value
			}
		}
		l.row(prefix, reflect.ValueOf(&p).Elem(), table, nil, source)
		l.password(prefix+"secret", &p.Secret)
		if p.CA != "" {
			var err error
			if p.CAPEM, err = os.ReadFile(p.CA); err != nil {
				l.complain(prefix+"ca", "read %s: %v", p.CA, reason(err))
			}
		}
		c.Pushes = append(c.Pushes, p)
	}
}

// checkPushes validates [[push]].
func (c *Config) checkPushes(v *checker) {
	for i := range c.Pushes {
		p, setting := &c.Pushes[i], fmt.Sprintf("push[%d]", i)
		switch {
		case p.Name == "":
			v.complain(setting+".name", "missing")
		case slices.ContainsFunc(c.Pushes[:i], func(o Push) bool { return o.Name == p.Name }):
			v.complain(setting+".name", "%q is the name of another target", p.Name)
		}
		v.word(setting+".name", p.Name, maxPushName)
		if len(p.Queues) == 0 {
			v.complain(setting+".queues", "missing")
		}
		for _, queue := range p.Queues {
			if queue == "" || len(queue) > maxQueueName {
				v.complain(setting+".queues", "the name of a queue has 1 to %d bytes", maxQueueName)
			}
		}
		if err := checkPushURL(p.URL); err != nil {
			v.complain(setting+".url", "%v", err)
		}
		v.count(setting+".concurrency", p.Concurrency, 1, maxPushConcurrency)
		v.rate(setting+".rate_per_s", p.Rate)
		v.duration(setting+".timeout", p.Timeout, time.Second, maxPushTimeout)
		if len(p.CAPEM) > 0 && !x509.NewCertPool().AppendCertsFromPEM(p.CAPEM) {
			v.complain(setting+".ca", "there is no certificate in %s", p.CA)
		}
		for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
			if err := checkPushHeader(name, p.Headers[name]); err != nil {
				v.complain(setting+".headers."+name, "%v", err)
			}
		}
	}
}

// checkPushURL refuses an address to which jobs would be sent in clear text.
func checkPushURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return errors.New("missing")
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("%q is not a URL such as https://shop.example.com/jobs", text)
	case u.User != nil:
		return errors.New("a user and a password belong into headers: Authorization")
	case u.Fragment != "":
		return errors.New("a part behind # is never sent")
	case u.Scheme == "http" && !(Address{Address: net.JoinHostPort(u.Hostname(), "0")}).Loopback():
		return fmt.Errorf("%s is another host: use https", u.Hostname())
	}
	return nil
}

// checkPushHeader refuses headers that the broker sets itself, and invalid headers.
func checkPushHeader(name, value string) error {
	switch {
	case slices.Contains([]string{"Content-Length", "Transfer-Encoding", "Connection", "Trailer", "Expect"}, name),
		strings.HasPrefix(name, "Broker-"):
		return errors.New("is set by the broker")
	case name == "" || strings.ContainsFunc(name,
		func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) }):
		return fmt.Errorf("%q is not the name of a header", name)
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return errors.New("the value contains a control character")
	}
	return nil
}
