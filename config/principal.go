package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"reflect"
	"strings"
)

// Principal is a person or program with rights on the broker. The program checks Token and Roles, not this package.
type Principal struct {
	Name            string   `toml:"name" doc:"name in the audit log"`
	Token           string   `toml:"token" doc:"for HTTP: sha256: and the hash of the token in hexadecimal; if it starts with a slash it names a file with the token"`
	TLSSubject      string   `toml:"tls_subject" doc:"subject or common name of the client certificate, on any port"`
	FaktoryPassword string   `toml:"faktory_password" doc:"of Faktory clients, in place of faktory.password; if it starts with a slash it names a file"`
	SQSAccessKey    string   `toml:"sqs_access_key" doc:"with sqs_secret_key: the key that signs requests of SQS clients"`
	SQSSecretKey    string   `toml:"sqs_secret_key" doc:"secret of that key; if it starts with a slash it names a file"`
	Roles           []string `toml:"roles" doc:"read, produce, consume, operate or admin; after a colon patterns of queues separated by commas, such as produce:mail.*"`
}

// principals reads [[principal]].
func (l *loader) principals(v any, source string, c *Config) {
	if v == nil {
		return
	}
	tables, ok := v.([]map[string]any)
	if !ok {
		l.complain("principal", "not written as [[principal]] (%s)", source)
		return
	}
	c.Principals = make([]Principal, len(tables))
	for i, table := range tables {
		prefix, p := fmt.Sprintf("principal[%d].", i), &c.Principals[i]
		l.row(prefix, reflect.ValueOf(p).Elem(), table, nil, source)
		l.password(prefix+"faktory_password", &p.FaktoryPassword)
		l.password(prefix+"sqs_secret_key", &p.SQSSecretKey)
		l.token(prefix+"token", &p.Token)
	}
}

// token replaces the name of a file by the hash of the token in it.
func (l *loader) token(setting string, text *string) {
	if !strings.HasPrefix(*text, "/") {
		return
	}
	path := *text
	*text = "" // avoids further problems about it
	read, err := os.ReadFile(path)
	if err != nil {
		l.complain(setting, "read %s: %v", path, reason(err))
		return
	}
	token := strings.TrimSpace(string(read))
	if token == "" {
		l.complain(setting, "the file it names is empty")
		return
	}
	sum := sha256.Sum256([]byte(token))
	*text = "sha256:" + hex.EncodeToString(sum[:])
}

// checkPrincipals finds principals with equal credentials, and principals that no client can use.
func (c *Config) checkPrincipals(v *checker) {
	seen := make(map[string]string)
	unique := func(setting, kind, value string) {
		if value == "" {
			return
		}
		if before := seen[kind+value]; before != "" {
			v.complain(setting, "is that of %s too", before)
		}
		seen[kind+value] = strings.TrimSuffix(setting, "."+kind)
	}
	for i, p := range c.Principals {
		prefix := fmt.Sprintf("principal[%d]", i)
		unique(prefix+".name", "name", p.Name)
		unique(prefix+".token", "token", p.Token)
		unique(prefix+".tls_subject", "tls_subject", p.TLSSubject)
		unique(prefix+".faktory_password", "faktory_password", p.FaktoryPassword)
		unique(prefix+".sqs_access_key", "sqs_access_key", p.SQSAccessKey)
		if p.Name == "" {
			v.complain(prefix+".name", "missing")
		}
		if (p.SQSAccessKey == "") != (p.SQSSecretKey == "") {
			v.complain(prefix+".sqs_access_key", "is required with sqs_secret_key, and the other way round")
		}
	}
	known := func(section, name string) {
		if name != "" && seen["name"+name] == "" {
			v.complain(section+".principal", "there is no principal %q", name)
		}
	}
	for _, p := range c.WireProtocols() {
		known(p.Name, p.Principal)
	}
	known("http", c.HTTP.Principal)
}
