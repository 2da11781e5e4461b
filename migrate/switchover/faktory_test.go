package switchover

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

const (
	faktoryHi = "+HI {\"v\":2,\"i\":2,\"s\":\"salt\"}\r\n"
	faktoryOK = "+OK\r\n"
)

// greeted is a worker whose server has its own password.
func (r *rig) greeted() (client, server *end) {
	r.t.Helper()
	client, server = r.join()
	server.send(faktoryHi)
	client.want(faktoryHi)
	const hello = "HELLO {\"pwdhash\":\"of the server\",\"v\":2,\"wid\":\"w1\"}\r\n"
	client.send(hello)
	server.want(hello)
	server.send(faktoryOK)
	client.want(faktoryOK)
	return client, server
}

// atFaktory is the broker's end of the next connection, which must know the broker's password.
func (r *rig) atFaktory() *end {
	r.t.Helper()
	broker := r.atBroker()
	broker.send(faktoryHi)
	first := sha256.Sum256([]byte("secretsalt"))
	second := sha256.Sum256(first[:])
	broker.want(fmt.Sprintf("HELLO {\"pwdhash\":\"%s\",\"v\":2,\"wid\":\"w1\"}\r\n", hex.EncodeToString(second[:])))
	broker.send(faktoryOK)
	return broker
}

func bulk(text string) string { return string(faktoryString([]byte(text))) }

func TestFaktoryListsAreSplit(t *testing.T) {
	t.Parallel()
	r := setup(t, "faktory")
	r.cutOver("mail")
	client, server := r.greeted()
	client.send("PUSHB [{\"jid\":\"a\",\"queue\":\"mail\"},{\"jid\":\"b\"},{\"jid\":\"c\",\"queue\":\"mail\"}]\r\n")
	server.want("PUSHB [{\"jid\":\"b\"}]\r\n")
	server.send(bulk("{}"))
	broker := r.atFaktory()
	broker.want("PUSHB [{\"jid\":\"a\",\"queue\":\"mail\"},{\"jid\":\"c\",\"queue\":\"mail\"}]\r\n")
	broker.send(bulk(`{"c":"no"}`))
	client.want(bulk(`{"c":"no"}`))
	if q := r.list()[0]; q.ToBroker != 1 {
		t.Errorf("%+v", q)
	}

	_, _ = r.broker.Close(), broker.Close()
	broker.wantEnd()
	client.send("PUSHB [{\"jid\":\"d\",\"queue\":\"mail\"},{\"jid\":\"e\"}]\r\n")
	server.want("PUSHB [{\"jid\":\"e\"}]\r\n")
	server.send(bulk(`{"e":"no either"}`))
	client.want("$")
	rest := make([]byte, 4096)
	n, err := client.Read(rest)
	if err != nil || !strings.Contains(string(rest[:n]), `{"d":"the `) ||
		!strings.Contains(string(rest[:n]), `"e":"no either"`) {
		t.Errorf("%q, %v", rest[:n], err)
	}
	client.send("PUSH {\"jid\":\"f\",\"queue\":\"mail\"}\r\n")
	client.want("-ERR the broker cannot be reached")
}

func TestAFaktoryJobIsAcknowledgedWhereItWasFetched(t *testing.T) {
	t.Parallel()
	r := setup(t, "faktory")
	r.cutOver("mail")
	client, server := r.greeted()
	client.send("FETCH mail other\r\n")
	broker := r.atFaktory()
	server.want("INFO\r\n")
	server.send(bulk(`{"faktory":{"queues":{"mail":0}}}`))
	broker.want("INFO\r\n")
	broker.send(bulk(`{"faktory":{"queues":{"mail":1}}}`))
	broker.want("FETCH mail\r\n")
	broker.send(bulk(`{"jid":"a","queue":"mail"}`))
	client.want(bulk(`{"jid":"a","queue":"mail"}`))

	another, anotherServer := r.greeted()
	another.send("FAIL {\"jid\":\"a\"}\r\nACK {\"jid\":\"b\"}\r\n")
	anotherBroker := r.atFaktory()
	anotherBroker.want("FAIL {\"jid\":\"a\"}\r\n")
	anotherBroker.send(faktoryOK)
	another.want(faktoryOK)
	// The side of this job is unknown.
	anotherServer.want("ACK {\"jid\":\"b\"}\r\n")
	anotherServer.send("-ERR unknown\r\n")
	anotherBroker.want("ACK {\"jid\":\"b\"}\r\n")
	anotherBroker.send(faktoryOK)
	another.want(faktoryOK)

	another.send("FETCH other\r\n") // the server's alone
	anotherServer.want("FETCH other\r\n")
	anotherServer.send(bulk(`{"jid":"c"}`))
	another.want(bulk(`{"jid":"c"}`))
	client.send("ACK {\"jid\":\"c\"}\r\n")
	server.want("ACK {\"jid\":\"c\"}\r\n")
	server.send(faktoryOK)
	client.want(faktoryOK)
}

func TestFaktoryWorkerGetsTheQuietOfEitherSide(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ server, broker, want string }{
		{faktoryOK, faktoryOK, faktoryOK},
		{faktoryOK, bulk(`{"state":"quiet"}`), bulk(`{"state":"quiet"}`)},
		{bulk(`{"state":"terminate"}`), bulk(`{"state":"quiet"}`), bulk(`{"state":"terminate"}`)},
		{bulk(`{"state":"quiet"}`), bulk(`{"state":"terminate"}`), bulk(`{"state":"terminate"}`)},
		{bulk(`{"state":"quiet"}`), "-ERR unknown worker\r\n", bulk(`{"state":"quiet"}`)},
	} {
		r := setup(t, "faktory")
		client, server := r.greeted()
		client.send("BEAT {\"wid\":\"w1\"}\r\n") // before any cut-over
		server.want("BEAT {\"wid\":\"w1\"}\r\n")
		server.send(faktoryOK)
		client.want(faktoryOK)
		r.cutOver("mail")
		client.send("BEAT {\"wid\":\"w1\"}\r\n")
		broker := r.atFaktory()
		server.want("BEAT {\"wid\":\"w1\"}\r\n")
		server.send(c.server)
		broker.want("BEAT {\"wid\":\"w1\"}\r\n")
		broker.send(c.broker)
		client.want(c.want)
	}
}

func TestFaktoryQueueWithoutDeliveriesIsSkipped(t *testing.T) {
	t.Parallel()
	var d depths
	d.read([]byte(bulk(`{"faktory":{"queues":{"mail":2,"video":1}}}`)))
	if q, ok := d.first([]string{"none", "mail", "video"}); q != "mail" || !ok {
		t.Errorf("%s, %v", q, ok)
	}
	d.skip("mail")
	if q, _ := d.first([]string{"mail", "video"}); q != "video" {
		t.Errorf("%s", q)
	}
	d.take("video")
	if q, ok := d.first([]string{"mail", "video"}); ok {
		t.Errorf("%s", q)
	}
}

func TestNumberOfRememberedJobsIsLimited(t *testing.T) {
	t.Parallel()
	const most = 100
	o := newOwners(most)
	for i := range 10 * most {
		o.set(fmt.Sprint(i), true)
		if n := len(o.new) + len(o.old); n > 2*most {
			t.Fatalf("%d", n)
		}
		if _, known := o.of(fmt.Sprint(max(0, i-most+1))); !known {
			t.Fatalf("%d forgot too much", i)
		}
	}
	o.forget(fmt.Sprint(10*most - 1))
	if _, known := o.of(fmt.Sprint(10*most - 1)); known {
		t.Error("not forgotten")
	}
}

// The broker may be killed while a worker's FETCH looks for the side that has jobs.
func TestAFetchWhoseBrokerIsLostMeanwhileGetsAnError(t *testing.T) {
	t.Parallel()
	r := setup(t, "faktory")
	r.cutOver("mail")
	client, server := r.greeted()
	client.send("FETCH mail\r\n")
	broker := r.atFaktory()
	server.want("INFO\r\n")
	server.send(bulk("{}"))
	broker.want("INFO\r\n")
	_ = broker.Close()
	server.want("INFO\r\n")
	server.send(bulk("{}"))
	client.want("-ERR the connection to the broker was lost\r\n")
}
