package integration_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"broker/integration/harness"
	"broker/integration/server"
)

// qlessCalls is a connection whose calls must succeed.
type qlessCalls struct {
	*qlessConn
	t *testing.T
}

func dialQlessCalls(t *testing.T, addr string) qlessCalls {
	t.Helper()
	c, err := dialQless(addr)
	check(t, err)
	t.Cleanup(func() { _ = c.conn.Close() }) // every reply was read
	return qlessCalls{c, t}
}

func (c qlessCalls) do(operation string, words ...string) string {
	c.t.Helper()
	text, err := c.call(operation, words...)
	check(c.t, err)
	return text
}

// pop pops one job.
func (c qlessCalls) pop(queue, worker string) (job struct{ Jid, Klass, Data string }) {
	c.t.Helper()
	text := c.do("pop", queue, worker, "1")
	jobs := []*struct{ Jid, Klass, Data string }{}
	if err := json.Unmarshal([]byte(text), &jobs); err != nil || len(jobs) != 1 {
		c.t.Fatalf("pop: %s", text)
	}
	return *jobs[0]
}

func TestQlessAndHTTPWorkersShareAQueue(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b, addr := startQless(t)
	c := dialQlessCalls(t, addr)
	equal(t, "put", c.do("put", "me", "mail", "from-qless", "Mail", `{"to":"x"}`, "0"), "from-qless")
	lease := api(t, b, "POST", "/queues/mail/lease")
	equal(t, "the job of Qless", lease["job"].(map[string]any)["id"].(string), "from-qless")
	equal(t, "state while HTTP has it", strings.Contains(c.do("get", "from-qless"), `"state":"running"`), true)
	equal(t, "pop meanwhile", c.do("pop", "mail", "w", "1"), "{}")
	api(t, b, "POST", "/leases/"+lease["lease"].(string)+"/complete", `{"result": "sent"}`)
	equal(t, "state after", strings.Contains(c.do("get", "from-qless"), `"state":"complete"`), true)

	api(t, b, "POST", "/jobs", `{"id": "from-http", "queue": "mail", "type": "Mail", "args": ["y"]}`)
	job := c.pop("mail", "w")
	equal(t, "the job of HTTP", job.Jid+" "+job.Klass+" "+job.Data, `from-http Mail ["y"]`)
	equal(t, "complete", c.do("complete", "from-http", "w", "mail", `"done"`), "complete")
	equal(t, "what is left", c.do("length", "mail"), ":0")
}

func TestQlessJobsQueuesAndWorkersAreSeenFromOutside(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b, addr := startQless(t)
	c := dialQlessCalls(t, addr)
	for _, jid := range []string{"one", "two", "three"} {
		c.do("put", "me", "seen", jid, "Look", "{}", "0", "tags", `["eye"]`)
	}
	held := c.pop("seen", "host-7")
	c.do("pause", "seen")
	queue := api(t, b, "GET", "/queues")["queues"].([]any)[0].(map[string]any)
	equal(t, "queue", fmt.Sprint(queue["name"], queue["ready"], queue["leased"], queue["paused"]), "seen2 1 true")
	job := api(t, b, "GET", "/jobs/"+held.Jid)
	equal(t, "job", fmt.Sprint(job["state"], job["type"], job["origin"], job["tags"]), "leasedLookqless[eye]")
	workers, err := json.Marshal(api(t, b, "GET", "/workers"))
	check(t, err)
	if !strings.Contains(string(workers), "host-7") || !strings.Contains(string(workers), `"queue":"seen"`) {
		t.Errorf("the worker and its job are not listed: %s", workers)
	}
	for _, row := range []struct {
		words []string
		want  string
	}{
		{[]string{"queues"}, "seen"},
		{[]string{"jobs", "--queue", "seen"}, "two"},
		{[]string{"job", held.Jid}, "Look"},
		{[]string{"workers"}, "host-7"},
	} {
		r := brokerCommand(t, append(row.words, "--server", "http://"+b.HTTP)...)
		if r.Code != 0 || !strings.Contains(r.Stdout, row.want) {
			t.Errorf("broker %q: %d %s%s", row.words, r.Code, r.Stdout, r.Stderr)
		}
	}
	equal(t, "paused for Qless", c.do("pop", "seen", "host-8", "1"), "{}")
	brokerCommand(t, "resume", "seen", "--server", "http://"+b.HTTP)
	equal(t, "resumed by the command line", c.pop("seen", "host-8").Klass, "Look")
	awaitTexts(t, func() string { return metricsOf(t, b) },
		`broker_submitted_jobs_total{protocol="qless",queue="seen"} 3`,
		`broker_leased_jobs_total{protocol="qless",queue="seen"} 2`,
		`broker_held_jobs{protocol="qless"} 2`)
}

func TestQlessPrincipalsAndAllowLists(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	addr, err := server.FreeAddr()
	check(t, err)
	harness.Start(t, harness.Options{Args: []string{"--qless", addr}, Config: `
[[principal]]
name = "producer"
token = "` + fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("p"))) + `"
roles = ["produce:a*"]
[[principal]]
name = "boss"
token = "` + fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("b"))) + `"
roles = ["admin"]
`})
	ask := func(c *qlessConn, words ...string) string {
		t.Helper()
		check(t, c.conn.SetDeadline(time.Now().Add(harness.Patience)))
		var s strings.Builder
		fmt.Fprintf(&s, "*%d\r\n", len(words))
		for _, w := range words {
			fmt.Fprintf(&s, "$%d\r\n%s\r\n", len(w), w)
		}
		_, err := c.conn.Write([]byte(s.String()))
		check(t, err)
		line, err := c.r.ReadString('\n')
		check(t, err)
		return strings.TrimSpace(line)
	}
	stranger, producer := dialQlessCalls(t, addr), dialQlessCalls(t, addr)
	refused := "-NOPERM this user has no permissions to run the 'put' command"
	equal(t, "a stranger", stranger.do("put", "me", "a1", "j", "K", "{}", "0"), refused)
	equal(t, "a wrong token", ask(producer.qlessConn, "AUTH", "boss", "p")[:10], "-WRONGPASS")
	equal(t, "auth", ask(producer.qlessConn, "AUTH", "producer", "p"), "+OK")
	equal(t, "own queue", producer.do("put", "me", "a1", "j", "K", "{}", "0"), "j")
	equal(t, "another queue", producer.do("put", "me", "b1", "k", "K", "{}", "0"), refused)

	closed, err := server.FreeAddr()
	check(t, err)
	harness.Start(t, harness.Options{Args: []string{"--qless", closed}, Config: "[qless]\nallow = [\"10.1.0.0/16\"]\n"})
	conn, err := net.DialTimeout("tcp", closed, harness.Patience)
	check(t, err)
	defer func() { _ = conn.Close() }() // the broker closed it
	check(t, conn.SetDeadline(time.Now().Add(harness.Patience)))
	_, _ = conn.Write([]byte("PING\r\n")) // it may be closed by now
	answer := make([]byte, 100)
	if n, err := conn.Read(answer); err == nil && strings.Contains(string(answer[:n]), "PONG") {
		t.Error("an address that is not allowed is served")
	}
}
