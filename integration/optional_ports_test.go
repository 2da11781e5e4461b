package integration_test

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"broker/integration/harness"
	"broker/integration/server"
)

// optionalPorts are the ports that are off unless a flag opens them, with a request that every client may send, and the
// start of its reply.
var optionalPorts = map[string]struct{ request, reply string }{
	"beanstalk": {"list-tube-used\r\n", "USING default\r\n"},
	"conveyor":  {"PING\r\n", "+PONG\r\n"},
	"qless":     {"PING\r\n", "+PONG\r\n"},
	"sqs":       {"GET /?Action=ListQueues HTTP/1.0\r\n\r\n", "HTTP/1.0 200 OK\r\n"},
}

// startOptionalPorts starts a broker with all of them open. settings are those of each of their sections, rest follows
// them.
func startOptionalPorts(t *testing.T, settings, rest string) (b *harness.Broker, addresses map[string]string) {
	t.Helper()
	harness.BrokerOnly(t)
	addresses = make(map[string]string)
	var args []string
	var sections strings.Builder
	for name := range optionalPorts {
		addr, err := server.FreeAddr()
		check(t, err)
		addresses[name] = addr
		args = append(args, "--"+name, addr)
		fmt.Fprintf(&sections, "[%s]\n%s\n", name, settings)
	}
	return harness.Start(t, harness.Options{Args: args, Config: sections.String() + rest}), addresses
}

// answerOf returns the start of the answer to a request, as long as the answer to a client that is served.
func answerOf(c net.Conn, request string, like string) string {
	_ = c.SetDeadline(time.Now().Add(harness.Patience)) // an error shows in the read
	_, _ = io.WriteString(c, request)                   // likewise
	b := make([]byte, len(like))
	n, _ := io.ReadFull(c, b)
	_ = c.Close() // the answer was read
	return string(b[:n])
}

func TestOptionalPortsSpeakTLSAndDemandCertificates(t *testing.T) {
	t.Parallel()
	cert, key, pool := selfSigned(t)
	otherCert, otherKey, _ := selfSigned(t)
	_, addresses := startOptionalPorts(t,
		fmt.Sprintf("tls_cert = %q\ntls_key = %q\ntls_client_ca = %q\n", cert, key, cert), "")
	for name, port := range optionalPorts {
		for what, config := range map[string]*tls.Config{
			"a certificate of the authority":     {Certificates: []tls.Certificate{signedBy(t, cert, key)}},
			"no certificate":                     {},
			"a certificate of another authority": {Certificates: []tls.Certificate{signedBy(t, otherCert, otherKey)}},
		} {
			config.RootCAs = pool
			want, got := "", ""
			if what == "a certificate of the authority" {
				want = port.reply
			}
			if c, err := tls.Dial("tcp", addresses[name], config); err == nil {
				got = answerOf(c, port.request, port.reply)
			}
			equal(t, name+" with "+what, got, want)
		}
		plain, err := net.Dial("tcp", addresses[name])
		check(t, err)
		if got := answerOf(plain, port.request, port.reply); got == port.reply {
			t.Errorf("%s answers plain text", name)
		}
	}
}

func TestOptionalPortsHaveAllowLists(t *testing.T) {
	t.Parallel()
	b, addresses := startOptionalPorts(t, `allow = ["127.0.0.2", "10.0.0.0/8"]`, "")
	for name, port := range optionalPorts {
		for from, want := range map[byte]string{2: port.reply, 3: ""} {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, from)}}
			c, err := d.Dial("tcp", addresses[name])
			check(t, err)
			equal(t, fmt.Sprintf("%s from 127.0.0.%d", name, from), answerOf(c, port.request, port.reply), want)
		}
		awaitTexts(t, func() string { return metricsOf(t, b) },
			fmt.Sprintf("broker_denied_connections_total{protocol=%q} 1\n", name))
	}
	awaitTexts(t, func() string { return metricsOf(t, b) },
		`broker_sqs_requests_total{action="ListQueues",outcome="done"} 1`+"\n")
}

// asker sends requests, and returns the first line of each answer.
func asker(t *testing.T, conn net.Conn) func(request string) string {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() }) // every reply was read
	in := bufio.NewReader(conn)
	return func(request string) string {
		t.Helper()
		check(t, conn.SetDeadline(time.Now().Add(harness.Patience)))
		_, err := io.WriteString(conn, request)
		check(t, err)
		line, err := in.ReadString('\n')
		check(t, err)
		return strings.TrimSpace(line)
	}
}

func dialAsker(t *testing.T, address string) func(request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	check(t, err)
	return asker(t, conn)
}

// The certificate of a Beanstalk client and the token of a Conveyor client name its principal. Other clients are the
// principal of the section.
func TestPrincipalsOfBeanstalkAndConveyor(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	cert, key, pool := selfSigned(t)
	clientCert, clientKey, _ := certificateOf(t, "mailer.example")
	addrs := make(map[string]string)
	for _, name := range []string{"beanstalk", "conveyor"} {
		addr, err := server.FreeAddr()
		check(t, err)
		addrs[name] = addr
	}
	b := harness.Start(t, harness.Options{
		Args: []string{"--beanstalk", addrs["beanstalk"], "--conveyor", addrs["conveyor"]},
		Config: fmt.Sprintf(`
[beanstalk]
tls_cert = %q
tls_key = %q
tls_client_ca = %q
[conveyor]
principal = "reader"
[[principal]]
name = "root"
token = "sha256:%x"
roles = ["admin"]
[[principal]]
name = "reader"
token = "sha256:%x"
roles = ["read"]
[[principal]]
name = "mailer"
tls_subject = "mailer.example"
token = "sha256:%x"
roles = ["produce:mail.*", "consume:mail.*"]
`, cert, key, clientCert, sha256.Sum256([]byte("root-token")), sha256.Sum256([]byte("reader-token")), sha256.Sum256([]byte("mailer-token"))),
	})
	pair, err := tls.LoadX509KeyPair(clientCert, clientKey)
	check(t, err)
	conn, err := tls.Dial("tcp", addrs["beanstalk"],
		&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	check(t, err)
	bean := asker(t, conn)
	equal(t, "use", bean("use mail.a\r\n"), "USING mail.a")
	equal(t, "own tube", bean("put 0 0 60 1\r\nx\r\n"), "INSERTED 1")
	equal(t, "use", bean("use other\r\n"), "USING other")
	equal(t, "another tube", bean("put 0 0 60 1\r\nx\r\n"), "UNKNOWN_COMMAND")
	equal(t, "pause", bean("pause-tube mail.a 1\r\n"), "UNKNOWN_COMMAND")
	equal(t, "watch", bean("watch mail.a\r\n"), "WATCHING 2")
	equal(t, "kick", bean("kick 1\r\n"), "UNKNOWN_COMMAND")

	conveyor := dialAsker(t, addrs["conveyor"])
	refused := "-NOPERM this user has no permissions to run the 'brpop' command"
	equal(t, "a client without credentials reads", conveyor("LLEN conv:queue:mail.a\r\n"), ":1")
	equal(t, "and takes nothing", conveyor("BRPOP conv:queue:mail.a 1\r\n"), refused)
	equal(t, "a wrong token", conveyor("AUTH mailer wrong\r\n")[:10], "-WRONGPASS")
	equal(t, "the token of another", conveyor("AUTH root mailer-token\r\n")[:10], "-WRONGPASS")
	equal(t, "a token", conveyor("AUTH mailer mailer-token\r\n"), "+OK")
	equal(t, "own queue", conveyor("BRPOP conv:queue:mail.a 1\r\n"), "*2")

	metrics := func() string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+b.HTTP+"/metrics", nil)
		check(t, err)
		req.Header.Set("Authorization", "Bearer root-token")
		resp, err := http.DefaultClient.Do(req)
		check(t, err)
		defer func() { _ = resp.Body.Close() }() // it was read
		text, err := io.ReadAll(resp.Body)
		check(t, err)
		return string(text)
	}
	for name, refusals := range map[string]int{"beanstalk": 3, "conveyor": 1} {
		awaitTexts(t, metrics, fmt.Sprintf("broker_forbidden_total{protocol=%q} %d\n", name, refusals))
	}
}

// Namespaces keep the queues of a protocol apart; its clients do not see the prefix.
func TestNamespacesOfBeanstalkAndConveyor(t *testing.T) {
	t.Parallel()
	b, addresses := startOptionalPorts(t, `namespace = "n."`, "[workq]\nnamespace = \"w.\"\n")
	bean, conveyor := dialAsker(t, addresses["beanstalk"]), dialAsker(t, addresses["conveyor"])
	equal(t, "use", bean("use q\r\n"), "USING q")
	equal(t, "put", bean("put 0 0 60 1\r\nx\r\n"), "INSERTED 1")
	equal(t, "tubes", bean("list-tubes\r\n"), "OK 18")
	for _, want := range []string{"---", "- default", "- q", ""} {
		equal(t, "list of tubes", bean(""), want)
	}
	equal(t, "Conveyor has the same namespace", conveyor("LLEN conv:queue:q\r\n"), ":1")
	fkt := dialFaktory(t, b)
	job, err := fkt.Fetch("n.q")
	check(t, err)
	if job == nil || job.Queue != "n.q" {
		t.Fatalf("fetched %+v, want the job of the tube", job)
	}
	check(t, fkt.Ack(job.Jid))
	check(t, fkt.Push(fktJob("q", 1)))
	equal(t, "Conveyor and a queue outside", conveyor("LLEN conv:queue:q\r\n"), ":0")
	equal(t, "Beanstalk and a queue outside", bean("peek-ready\r\n"), "NOT_FOUND")
	check(t, fkt.Push(fktJob("n.q", 1)))
	equal(t, "a job for Conveyor", conveyor("LLEN conv:queue:q\r\n"), ":1")
	equal(t, "and for Beanstalk", bean("peek-ready\r\n"), "FOUND 3 3")
}
