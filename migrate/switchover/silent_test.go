package switchover

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
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

// A node of a cluster that has no leader accepts connections, answers nothing, and closes them after a while.
func TestCutOverNeedsABrokerThatAnswers(t *testing.T) {
	t.Parallel()
	for _, protocol := range Protocols() {
		silent := setup(t, protocol)
		silent.replyWithin = 50 * time.Millisecond
		closes := setup(t, protocol)
		go func() { // ends with the listener
			for conn, err := closes.broker.Accept(); err == nil; conn, err = closes.broker.Accept() {
				_ = conn.Close() // nothing was sent
			}
		}()
		for name, r := range map[string]*rig{"silent": silent, "closes": closes} {
			if err := r.CutOver("mail"); !errors.Is(err, errNoLeader) || r.any() {
				t.Errorf("%s, %s: %v, %v", protocol, name, err, r.list())
			}
		}
		mux := http.NewServeMux()
		silent.Serve(mux)
		req := httptest.NewRequest(http.MethodPost, "/queues", strings.NewReader(`{"action":"cut-over","queues":["mail"]}`))
		req.RemoteAddr, req.Host = "127.0.0.1:9", "localhost:7430"
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, req)
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), `"code":"no_leader"`) {
			t.Errorf("%s: status %d: %s", protocol, w.Code, w.Body)
		}
	}
}

func TestCutOverAsksTheBroker(t *testing.T) {
	t.Parallel()
	for protocol, answer := range map[string]func(*end){
		"gearman":   func(e *end) { e.want(req(packet.EchoReq)); e.send(res(packet.EchoRes)) },
		"beanstalk": func(e *end) { e.want("list-tube-used\r\n"); e.send("USING default\r\n") },
		"faktory":   func(e *end) { e.send(faktoryHi); e.want("HELLO {"); e.send(faktoryOK) },
	} {
		r := setup(t, protocol)
		r.replyWithin = patience
		cut := make(chan error, 1)
		go func() { cut <- r.CutOver("mail") }()
		answer(r.atBroker())
		if err := <-cut; err != nil || !r.isNew("mail") {
			t.Errorf("%s: %v", protocol, err)
		}
	}
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
