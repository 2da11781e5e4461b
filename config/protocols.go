package config

import (
	"slices"
	"strings"
)

// WireProtocol is the section of a front-end that speaks a wire protocol.
type WireProtocol struct {
	Name string
	*Protocol
	Password *string // nil: the protocol has no password
	HasTypes bool    // its jobs have a type beside their queue
}

// WireProtocols lists the sections of the front-ends. Code that concerns all front-ends must use this list.
func (c *Config) WireProtocols() []WireProtocol {
	return []WireProtocol{
		{Name: "workq", Protocol: &c.Workq.Protocol},
		{Name: "gearman", Protocol: &c.Gearman.Protocol},
		{Name: "faktory", Protocol: &c.Faktory.Protocol, Password: &c.Faktory.Password, HasTypes: true},
		{Name: "qless", Protocol: &c.Qless.Protocol, Password: &c.Qless.Password, HasTypes: true},
		{Name: "conveyor", Protocol: &c.Conveyor.Protocol, Password: &c.Conveyor.Password, HasTypes: true},
		{Name: "beanstalk", Protocol: &c.Beanstalk.Protocol},
		{Name: "sqs", Protocol: &c.SQS.Protocol, HasTypes: true},
	}
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

// SecretSettings are the paths of the passwords.
func (c *Config) SecretSettings() []string {
	paths := []string{"http.password"}
	for _, p := range c.WireProtocols() {
		if p.Password != nil {
			paths = append(paths, p.Name+".password")
		}
	}
	return paths
}

// IsSecret reports whether the value of a setting is secret.
func (c *Config) IsSecret(path string) bool { return slices.Contains(c.SecretSettings(), path) }
