package harness

import (
	"os"
	"testing"
	"time"

	"broker/integration/server"
)

func reference() bool { return os.Getenv("BROKER_REFERENCE") == "1" }

// BrokerOnly skips the test with BROKER_REFERENCE=1: the reference servers cannot pass it.
func BrokerOnly(t testing.TB) {
	t.Helper()
	if reference() {
		skip(t, "the reference servers cannot do this")
	}
}

// ReferenceBeanstalkd starts beanstalkd with BROKER_REFERENCE=1 and returns its address; otherwise an empty string.
func ReferenceBeanstalkd(t testing.TB) string {
	t.Helper()
	if !reference() {
		return ""
	}
	Need(t, "beanstalkd")
	peer, err := server.StartBeanstalkd(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(peer.Kill)
	return peer.Addr
}

// Reference returns the path of the Faktory server.
func Reference(t testing.TB) string {
	t.Helper()
	return FaktoryServer(t, server.Faktory)
}

// FaktoryServer returns the path of a version of the Faktory server.
func FaktoryServer(t testing.TB, version string) string {
	t.Helper()
	return program(t, "faktory "+version, func(dir string) (string, error) { return server.BuildFaktory(dir, version) })
}

// startReference starts gearmand and Faktory instead of the broker.
func startReference(t testing.TB, o Options) *Broker {
	t.Helper()
	if o.Config != "" || o.Durability != "" || len(o.Args) > 0 || len(o.Env) > 0 {
		BrokerOnly(t)
	}
	Need(t, "gearmand")
	b := &Broker{BrokerServer: &server.BrokerServer{}, Password: o.Password, t: t}
	gearmand, err := server.StartGearmand(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gearmand.Kill)
	faktory, err := server.StartFaktory(Reference(t), t.TempDir(), o.Password)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { faktory.Stop(10 * time.Second) })
	b.Gearman, b.Faktory, b.Process = gearmand.Addr, faktory.Addr, gearmand.Process
	return b
}
