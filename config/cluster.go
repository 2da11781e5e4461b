package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"
)

// Cluster makes the broker a node of a cluster. Without members it is a single broker.
type Cluster struct {
	Node            string        `toml:"node" doc:"id of this node in a cluster; empty: no cluster"`
	Members         Members       `toml:"members" doc:"nodes of the cluster, each as id=host:port (in the environment and on the command line separated by commas); all nodes get the same list"`
	Join            bool          `toml:"join" doc:"the node joins an existing cluster, after broker cluster add; it never starts a new one"`
	Listen          Address       `toml:"listen" doc:"host:port for the other nodes; empty: this node's address in members"`
	ElectionTimeout time.Duration `toml:"election_timeout" doc:"how long the other nodes wait for a message from the leader before they elect another one"`
	KeepLog         Size          `toml:"keep_log" doc:"log kept for nodes that lag; 0: as the store, at least 1 GiB"`
	LeaseCommit     string        `toml:"lease_commit" doc:"when a lease is replicated to a majority of the nodes: after the job is handed out (faster; the leader relies on its clock to know that no other node leads) or before (no clock matters, but workers that take one job at a time wait longer)"`
	TLSCert         string        `toml:"tls_cert" doc:"certificate chain in PEM with which nodes authenticate to each other; required unless all nodes are on loopback"`
	TLSKey          string        `toml:"tls_key" doc:"private key in PEM"`
	TLSCA           string        `toml:"tls_ca" doc:"CA certificates in PEM that sign the certificates of nodes only"`
}

// Values of lease_commit.
const (
	LeaseAfter  = "after"
	LeaseBefore = "before"
)

// Enabled reports whether the broker is a node of a cluster.
func (c Cluster) Enabled() bool { return c.Node != "" || len(c.Members) > 0 }

// Member is a node of a cluster and its address.
type Member struct{ ID, Address string }

// Members are the nodes of a cluster, with different ids and addresses.
type Members []Member

func (m Member) String() string { return m.ID + "=" + m.Address }

func (ms Members) String() string {
	texts := make([]string, len(ms))
	for i, m := range ms {
		texts[i] = m.String()
	}
	return strings.Join(texts, ",")
}

// Find returns the node with an id.
func (ms Members) Find(id string) (m Member, found bool) {
	i := slices.IndexFunc(ms, func(m Member) bool { return m.ID == id })
	if i < 0 {
		return Member{}, false
	}
	return ms[i], true
}

// parse implements parser.
func (ms *Members) parse(v any) error {
	list, err := parseList(v)
	if err != nil {
		return err
	}
	var all Members
	for _, text := range list {
		m, err := ParseMember(text)
		if err != nil {
			return err
		}
		for _, o := range all {
			if o.ID == m.ID {
				return fmt.Errorf("node %s is listed twice", m.ID)
			}
			if o.Address == m.Address {
				return fmt.Errorf("nodes %s and %s have the same address %s", o.ID, m.ID, m.Address)
			}
		}
		all = append(all, m)
	}
	*ms = all
	return nil
}

// maxNodeID is the length of the longest id of a node.
const maxNodeID = 63

// ParseMember parses id=host:port.
func ParseMember(text string) (Member, error) {
	id, address, ok := strings.Cut(text, "=")
	if !ok {
		return Member{}, fmt.Errorf("%q is not id=host:port", text)
	}
	if id == "" || len(id) > maxNodeID || strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
	}) {
		return Member{},
			fmt.Errorf("node id %q is not one to %d letters, digits, dots, dashes and underscores", id, maxNodeID)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || port == "" || port == "0" {
		return Member{}, fmt.Errorf("address %q of node %s is not host:port", address, id)
	}
	return Member{ID: id, Address: address}, nil
}

// Bounds of election_timeout.
const (
	minElection = 100 * time.Millisecond
	maxElection = time.Minute
)

// checkCluster refuses clusters that cannot keep their guarantees.
func (c *Config) checkCluster(v *checker) {
	k := c.Cluster
	v.duration("cluster.election_timeout", k.ElectionTimeout, minElection, maxElection)
	v.size("cluster.keep_log", k.KeepLog, 0, 1<<20*GiB)
	if k.LeaseCommit != LeaseAfter && k.LeaseCommit != LeaseBefore {
		v.complain("cluster.lease_commit", "%q is not %s or %s", k.LeaseCommit, LeaseAfter, LeaseBefore)
	}
	if !k.Enabled() {
		return
	}
	own, isMember := k.Members.Find(k.Node)
	switch {
	case len(k.Members) == 0:
		v.complain("cluster.members",
			"are missing: --node requires --cluster, the same list on every node, such as n1=10.0.0.1:7431,n2=10.0.0.2:7431,n3=10.0.0.3:7431")
	case k.Node == "":
		v.complain("cluster.node", "is missing: --cluster requires --node, which says which of the members this one is")
	case !isMember:
		v.complain("cluster.node", "%s is not one of the members %s", k.Node, k.Members)
	}
	if c.Durability != "sync" {
		v.complain("durability",
			"%s does not go with a cluster, which acknowledges what a majority has synced: use sync", c.Durability)
	}
	if k.Listen != (Address{}) {
		v.listen("cluster.listen", Addresses{k.Listen})
	} else if isMember {
		v.listen("cluster.members", tcp(own.Address))
	}
	c.checkClusterTLS(v)
}

func (c *Config) checkClusterTLS(v *checker) {
	k := c.Cluster
	if k.TLSCert != "" || k.TLSKey != "" || k.TLSCA != "" {
		if k.TLSCert == "" || k.TLSKey == "" || k.TLSCA == "" {
			v.complain("cluster.tls_cert", "tls_cert, tls_key and tls_ca of the cluster go together")
		} else if _, err := k.TLS(); err != nil {
			v.complain("cluster.tls_cert", "%v", err)
		}
		return
	}
	for _, m := range k.Members {
		if !(Address{Network: "tcp", Address: m.Address}).Loopback() {
			v.complain("cluster.tls_cert",
				"is missing: other hosts can reach the nodes (%s); without certificates nodes call each other on loopback only",
				m.Address)
			return
		}
	}
}

// TLS loads the certificate files for calls between nodes in both directions; nil if none are set. The names in
// certificates do not matter: every program with a certificate of the CA counts as a node.
func (c Cluster) TLS() (*tls.Config, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, err
	}
	pem, err := os.ReadFile(c.TLSCA)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("no certificate in %s", c.TLSCA)
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert},
		ClientAuth: tls.RequireAnyClientCert, InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errors.New("the other node shows no certificate")
			}
			between := x509.NewCertPool()
			for _, c := range s.PeerCertificates[1:] {
				between.AddCert(c)
			}
			_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{
				Roots: pool, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
			})
			return err
		},
	}, nil
}
