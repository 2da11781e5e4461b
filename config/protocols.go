package config

import (
	"slices"
	"strings"
)

// WireProtocol is the section of a front-end that speaks a wire protocol.
type WireProtocol struct {
	Name  string
	Title string // for people
	*Protocol
	Replaces string  // the server whose port it takes, if that is not one of its own
	Port     string  // of its own server, if the broker has it off by default
	Password *string // nil: the protocol has no password
	HasTypes bool    // its jobs have a type beside their queue
}

// WireProtocols lists the sections of the front-ends. Code that concerns all front-ends must use this list.
func (c *Config) WireProtocols() []WireProtocol {
	return []WireProtocol{
		{Name: "workq", Title: "Workq", Protocol: &c.Workq.Protocol},
		{Name: "gearman", Title: "Gearman", Protocol: &c.Gearman.Protocol},
		{
			Name: "faktory", Title: "Faktory", Protocol: &c.Faktory.Protocol,
			Password: &c.Faktory.Password, HasTypes: true,
		},
		{
			Name: "qless", Title: "Qless", Protocol: &c.Qless.Protocol, Replaces: "Redis",
			Password: &c.Qless.Password, HasTypes: true,
		},
		{
			Name: "conveyor", Title: "Conveyor", Protocol: &c.Conveyor.Protocol, Replaces: "Redis",
			Password: &c.Conveyor.Password, HasTypes: true,
		},
		{Name: "beanstalk", Title: "Beanstalk", Protocol: &c.Beanstalk.Protocol, Port: "11300"},
		{Name: "sqs", Title: "Amazon SQS", Protocol: &c.SQS.Protocol, HasTypes: true},
	}
}

// ListenOnly are variables of the environment that turn everything off that listens, except one protocol.
func ListenOnly(protocol string) (env []string) {
	for _, name := range ListenerNames() {
		if name != protocol {
			env = append(env, "BROKER_"+strings.ToUpper(name)+"_LISTEN=off")
		}
	}
	return env
}

// HasPassword reports whether clients need a password.
func (p *WireProtocol) HasPassword() bool { return p.Password != nil && *p.Password != "" }

// wireNames returns the names of the matching protocols.
func wireNames(matches func(*WireProtocol) bool) (names []string) {
	c := Default()
	for _, p := range c.WireProtocols() {
		if matches(&p) {
			names = append(names, p.Name)
		}
	}
	return names
}

// allWireNames are the names of all protocols.
func allWireNames() []string { return wireNames(func(*WireProtocol) bool { return true }) }

// ListenerNames are the names of everything that listens: the protocols and http.
func ListenerNames() []string { return append(allWireNames(), "http") }

// hasTypes reports whether jobs of a protocol have a type.
func hasTypes(protocol string) bool {
	return slices.Contains(wireNames(func(p *WireProtocol) bool { return p.HasTypes }), protocol)
}

// typedNames lists the protocols whose jobs have types, for people.
func typedNames() string {
	names := wireNames(func(p *WireProtocol) bool { return p.HasTypes })
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// secretSettings are the paths of the passwords.
func (c *Config) secretSettings() []string {
	paths := []string{"http.password"}
	for _, p := range c.WireProtocols() {
		if p.Password != nil {
			paths = append(paths, p.Name+".password")
		}
	}
	return paths
}

// IsSecret reports whether the value of a setting is secret.
func (c *Config) IsSecret(path string) bool { return slices.Contains(c.secretSettings(), path) }
