package integration_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

// endsAfter sends a byte now and then, and returns how long the server kept the connection.
func endsAfter(t *testing.T, address, bytes string) time.Duration {
	t.Helper()
	begin := time.Now()
	c, err := net.DialTimeout("tcp", address, harness.Patience)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer func() { _ = c.Close() }() // it has ended
	go func() {                      // ends with the connection
		for i := 0; ; i++ {
			if _, err := c.Write([]byte{bytes[i%len(bytes)]}); err != nil {
				return
			}
			time.Sleep(700 * time.Millisecond)
		}
	}()
	_ = c.SetReadDeadline(begin.Add(harness.Patience)) // the read shows what happens
	_, _ = io.Copy(io.Discard, c)                      // only the time of its end matters
	return time.Since(begin)
}

// TestHandshakesHaveDeadlines: greetings, TLS handshakes and HTTP headers have deadlines. A request may take longer
// than all of them.
func TestHandshakesHaveDeadlines(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	cert, key, pool := selfSigned(t)
	b := harness.Start(t, harness.Options{Config: fmt.Sprintf("[gearman]\ntls_cert = %q\ntls_key = %q\n", cert, key)})
	secure := harness.Prepare(t,
		harness.Options{Config: fmt.Sprintf("[http]\ntls_cert = %q\ntls_key = %q\n", cert, key)})
	check(t, secure.Spawn())
	harness.Eventually(t, func() string {
		c, err := tls.Dial("tcp", secure.HTTP, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})
		if err != nil {
			return err.Error()
		}
		check(t, c.Close())
		return ""
	})
	var all sync.WaitGroup
	for _, test := range []struct {
		what, address, bytes string
		deadline             time.Duration
	}{
		{"Faktory's greeting", b.Faktory, "HELLO {\"wid\":\"" + strings.Repeat("x", 100), 2 * time.Second},
		{
			"a TLS handshake", b.Gearman, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("x", 100),
			10 * time.Second,
		},
		{
			"a TLS handshake of HTTP", secure.HTTP,
			"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("x", 100), 10 * time.Second,
		},
		{"an HTTP header", b.HTTP, "GET / HTTP/1.1\r\nX-Long: " + strings.Repeat("x", 100), 10 * time.Second},
	} {
		all.Go(func() { // ends with the connection
			took := endsAfter(t, test.address, test.bytes)
			const early, late = 100 * time.Millisecond, 3 * time.Second
			if took < test.deadline-early {
				t.Errorf("%s had a deadline of %v, not %v", test.what, took, test.deadline)
			}
			harness.CheckDuration(t, test.what, took, test.deadline+late)
		})
	}
	slow := harness.DialWorkq(t, b)
	check(t, slow.Send([]byte("lease q")))
	time.Sleep(10500 * time.Millisecond) // longer than every deadline
	check(t, slow.Send([]byte(" 0\r\n")))
	line, err := slow.Line(harness.Patience)
	check(t, err)
	equal(t, "a slow request", line, "-TIMEOUT")
	all.Wait()
}

// A request without a valid login gets its reply before its body has come. A body that never ends does not hold the
// connection.
func TestRefusedRequestsWithoutAnEndAreClosed(t *testing.T) {
	t.Parallel()
	b, sqs := startSQS(t, "[[principal]]\nname = \"shop\"\nsqs_access_key = \"AKIASHOP\"\nsqs_secret_key = \"secret\"\n"+
		"roles = [\"admin\"]\n")
	signed := func(key, date string) string {
		return "X-Amz-Date: " + date + "T000000Z\r\nAuthorization: AWS4-HMAC-SHA256 Credential=" + key + "/" + date +
			"/us-east-1/sqs/aws4_request, SignedHeaders=host;x-amz-date;x-amz-target, Signature=00\r\n"
	}
	const most = 15 * time.Second // half of the time that a client with a login has for its body, which never ends here
	for _, test := range []struct{ what, address, header, status string }{
		{"SQS without a signature", sqs, "", "403"},
		{"SQS with an unknown key", sqs, signed("AKIAOTHER", "20260102"), "403"},
		{"SQS with an old signature", sqs, signed("AKIASHOP", "20160102"), "403"},
		{"SQS from a page", sqs, "Origin: http://evil.example\r\n", "403"},
		{"HTTP without a token", b.HTTP, "", "401"},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			s := dialRawConn(t, test.address)
			s.send("POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\nX-Amz-Target: AmazonSQS.ListQueues\r\n" +
				test.header + "\r\n{")
			begin := time.Now()
			go func() { // ends with the connection
				for {
					if _, err := io.WriteString(s, " "); err != nil {
						return
					}
					time.Sleep(100 * time.Millisecond)
				}
			}()
			s.wantLine("HTTP/1.1 " + test.status)
			s.cutOff()
			harness.CheckDuration(t, test.what, time.Since(begin), most)
		})
	}
}

// TestHTTPHasConnectionsOfItsOwn: HTTP gets an eighth of the descriptors, and 32 more for clients that have not logged
// in. One more connection closes the least recently used one; the other ports are not affected.
func TestHTTPHasConnectionsOfItsOwn(t *testing.T) {
	t.Parallel()
	const granted, most = 160, 160/8 + 32
	b := prepareWith(t, withDescriptors(t, granted))
	check(t, b.BrokerServer.Start())
	worker := harness.DialGearman(t, b)
	request := func(s *rawConn) error {
		s.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		resp, err := http.ReadResponse(s.r, nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		equal(t, "status", resp.StatusCode, http.StatusOK)
		return err
	}
	use := func() error {
		var all []*rawConn
		var errs []error
		for range most {
			s := dialRawConn(t, b.HTTP)
			all = append(all, s)
			errs = append(errs, request(s), request(all[0]))
		}
		errs = append(errs, request(dialRawConn(t, b.HTTP))) // the second one is the least recently used
		if got := all[1].cutOff(); got != "" {
			t.Errorf("the least recently used connection receives %q", got)
		}
		for i, s := range all {
			if i != 1 {
				errs = append(errs, request(s))
			}
		}
		return errors.Join(errs...)
	}
	// Without a login a connection may be idle for 10 s: on a busy machine it takes more than one attempt.
	for quick := false; !quick; {
		begin := time.Now()
		err := use()
		if quick = time.Since(begin) < 8*time.Second; quick {
			check(t, err)
		}
	}
	_, err := worker.Submit(gearmanclient.SubmitJobBg, "f", "", "x")
	check(t, err)
}

// withDescriptors is a program that runs the broker with a limit of descriptors.
func withDescriptors(t *testing.T, granted int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "few")
	check(t, os.WriteFile(path,
		fmt.Appendf(nil, "#!/bin/sh\nulimit -n %d\nexec %q \"$@\"\n", granted, harness.Binary(t)), 0o700))
	return path
}
