package switchover

import (
	"testing"
	"time"

	"broker/frontends/gearman/packet"
)

// A broker that hangs with open connections must not delay the server's jobs.
func TestSilentBrokerCountsAsLost(t *testing.T) {
	t.Parallel()
	t.Run("gearman", func(t *testing.T) {
		t.Parallel()
		r := setup(t, "gearman")
		r.replyWithin = 50 * time.Millisecond
		r.cutOver("mail")
		client, server := r.join()
		client.send(req(packet.CanDo, "mail"))
		server.want(req(packet.CanDo, "mail"))
		r.atBroker().want(req(packet.CanDo, "mail"))
		client.send(req(packet.GrabJob))
		server.want(req(packet.GrabJob))
		server.send(res(packet.NoJob)) // the broker is asked and does not answer
		client.want(res(packet.NoJob))
	})
	t.Run("faktory", func(t *testing.T) {
		t.Parallel()
		r := setup(t, "faktory")
		r.replyWithin = 50 * time.Millisecond
		r.cutOver("mail")
		client, server := r.greeted()
		client.send("PUSH {\"jid\":\"a\",\"queue\":\"mail\"}\r\n")
		r.atFaktory().want("PUSH {")
		client.want("-ERR the connection to the broker was lost\r\n")
		client.send("ACK {\"jid\":\"b\"}\r\n")
		broker := r.atFaktory()
		server.want("ACK {\"jid\":\"b\"}\r\n")
		server.send(faktoryOK)
		broker.want("ACK {\"jid\":\"b\"}\r\n")
		client.want(faktoryOK)
	})
	t.Run("beanstalk", func(t *testing.T) {
		t.Parallel()
		r := setup(t, "beanstalk")
		r.replyWithin = 50 * time.Millisecond
		r.cutOver("default")
		client, server := r.join()
		client.send("reserve\r\n")
		r.atBroker().want("reserve-with-timeout 0\r\n")
		server.want("reserve-with-timeout 0\r\n")
		server.send("RESERVED 1 1\r\na\r\n")
		client.want("RESERVED 1 1\r\na\r\n")
	})
}

func TestHandlesOfOtherGearmanServersPass(t *testing.T) {
	t.Parallel()
	r := setup(t, "gearman")
	client, server := r.join()
	for _, handle := range []string{"h:a:1", "job-1", ""} {
		client.send(req(packet.WorkComplete, handle, "x") + req(packet.GetStatus, handle))
		server.want(req(packet.WorkComplete, handle, "x") + req(packet.GetStatus, handle))
	}
	r.cutOver("mail")
	client.send(req(packet.WorkComplete, "job-1", "x"))
	server.want(req(packet.WorkComplete, "job-1", "x"))
}

func TestABrokerWithOtherHandlesIsRefused(t *testing.T) {
	t.Parallel()
	r := setup(t, "gearman")
	r.cutOver("mail")
	client, _ := r.join()
	client.send(req(packet.SubmitJobBg, "mail", "", "x"))
	broker := r.atBroker()
	broker.want(req(packet.SubmitJobBg, "mail", "", "x"))
	broker.send(res(packet.JobCreated, "X:a:1"))
	client.want("\x00RES\x00\x00\x00\x13")
	broker.wantEnd()
}
