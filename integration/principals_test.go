package integration_test

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/harness"
)

// certified is a connection with a client certificate that sends and reads lines.
type certified struct {
	t    *testing.T
	conn *tls.Conn
	in   *bufio.Reader
}

func dialCertified(t *testing.T, address, cert, key string, pool *x509.CertPool) *certified {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(cert, key)
	check(t, err)
	conn, err := tls.Dial("tcp", address,
		&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	check(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // every reply was read
	return &certified{t: t, conn: conn, in: bufio.NewReader(conn)}
}

// ask sends a request and returns the line that it is answered with.
func (c *certified) ask(request string) string {
	c.t.Helper()
	check(c.t, c.conn.SetDeadline(time.Now().Add(harness.Patience)))
	_, err := c.conn.Write([]byte(request))
	check(c.t, err)
	line, err := c.in.ReadString('\n')
	check(c.t, err)
	return strings.TrimSpace(line)
}

// askAs reads from the HTTP API with a token.
func askAs(t *testing.T, b *harness.Broker, token, path string) (answer map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+b.HTTP+"/api/v1"+path, nil)
	check(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	check(t, err)
	defer func() { _ = resp.Body.Close() }() // it was read
	check(t, json.NewDecoder(resp.Body).Decode(&answer))
	equal(t, "status of "+path, resp.StatusCode, http.StatusOK)
	return answer
}

// wantText checks that an error has this text in it.
func wantText(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %s", err, text)
	}
}

func TestPrincipalsOfEveryProtocol(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	cert, key, pool := selfSigned(t)
	clientCert, clientKey, _ := certificateOf(t, "mailer.example")
	var tlsSettings strings.Builder
	for _, protocol := range []string{"workq", "gearman"} {
		fmt.Fprintf(&tlsSettings, "[%s]\ntls_cert = %q\ntls_key = %q\ntls_client_ca = %q\n", protocol, cert, key,
			clientCert)
	}
	settings := func(roles string) string {
		return tlsSettings.String() + fmt.Sprintf(`
[[principal]]
name = "root"
token = %q
roles = ["admin"]
[[principal]]
name = "mailer"
tls_subject = "mailer.example"
faktory_password = "sesame"
roles = [%s]
`, fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("root-token"))), roles)
	}
	b, rewrite := reloadable(t, settings(`"produce:mail.*", "consume:mail.*"`))

	wq := dialCertified(t, b.Workq, clientCert, clientKey, pool)
	const id = "6ba7b810-9dad-41d1-80b4-00c04fd430c"
	equal(t, "own queue", wq.ask("add "+id+"1 mail.a 1000 600000 1\r\nx\r\n"), "+OK")
	equal(t, "another queue", wq.ask("add "+id+"2 other 1000 60000 1\r\nx\r\n"), "-CLIENT-ERROR Not allowed")
	gm := dialCertified(t, b.Gearman, clientCert, clientKey, pool)
	equal(t, "status", gm.ask("status\r\n"), "ERR NOT_ALLOWED Not+allowed+for+this+client")
	equal(t, "maxqueue", gm.ask("maxqueue mail.a 5\r\n"), "ERR NOT_ALLOWED Not+allowed+for+this+client")

	open := func(password string) (*faktory.Client, error) {
		return harness.OpenFaktory(&harness.Broker{BrokerServer: b.BrokerServer, Password: password}, harness.Patience)
	}
	_, err := open("wrong")
	wantText(t, err, "Invalid password")
	fkt, err := open("sesame")
	check(t, err)
	defer func() { _ = fkt.Close() }() // every reply was read
	check(t, fkt.Push(fktJob("mail.b", 1)))
	wantText(t, fkt.Push(fktJob("other", 1)), "not allowed")
	_, err = fkt.Generic(`MUTATE {"cmd":"clear","target":"dead"}`)
	wantText(t, err, "not allowed")
	stranger, err := open("")
	check(t, err)
	defer func() { _ = stranger.Close() }() // every reply was read
	wantText(t, stranger.Push(fktJob("mail.b", 1)), "not allowed")

	rewrite(settings(`"operate"`))
	equal(t, "maxqueue after the reload", gm.ask("maxqueue mail.a 5\r\n"), "OK")
	equal(t, "produce after the reload", wq.ask("add "+id+"3 mail.a 1000 60000 1\r\nx\r\n"),
		"-CLIENT-ERROR Not allowed")

	entry := askAs(t, b, "root-token", "/audit?limit=1")["entries"].([]any)[0].(map[string]any)
	equal(t, "audit", fmt.Sprintln(entry["who"], entry["via"], entry["action"], entry["target"]),
		"mailer gearman queue.limit mail.a\n")
	equal(t, "delete", wq.ask("delete "+id+"1\r\n"), "+OK")
	entry = askAs(t, b, "root-token", "/audit?limit=1")["entries"].([]any)[0].(map[string]any)
	equal(t, "audit", fmt.Sprintln(entry["who"], entry["via"], entry["action"], entry["target"]),
		"mailer workq job.delete "+id+"1\n")
	worker := askAs(t, b, "root-token", "/workers?protocol=workq")["workers"].([]any)[0].(map[string]any)
	equal(t, "identity", fmt.Sprint(worker["identity"]), "CN=mailer.example")
}
