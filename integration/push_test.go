package integration_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"broker/integration/harness"
	"broker/integration/server"
)

// pushed is a request that a receiver has got.
type pushed struct {
	id, queue, attempt, body string
}

// receiver accepts pushed jobs; reply answers them.
func receiver(
	t *testing.T, reply func(p pushed, w http.ResponseWriter, r *http.Request),
) (url string, requests chan pushed) {
	t.Helper()
	requests = make(chan pushed, 1000)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // the broker may be killed meanwhile
		h := r.Header
		p := pushed{h.Get("Broker-Job-Id"), h.Get("Broker-Queue"), h.Get("Broker-Attempt"), string(body)}
		requests <- p
		reply(p, w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL, requests
}

// nextPushed is the next request.
func nextPushed(t *testing.T, requests chan pushed) pushed {
	t.Helper()
	select {
	case p := <-requests:
		return p
	case <-time.After(harness.Patience):
		t.Fatal("nothing was pushed")
		panic("unreachable")
	}
}

// pushTarget is the setting of a target for a queue.
func pushTarget(name, url string) string {
	return fmt.Sprintf("[[push]]\nname = %q\nqueues = [%q]\nurl = %q\ntimeout = 60\n", name, name, url)
}

// A job whose answer the broker has not seen, since it was killed, is pushed again, and the receiver sees that.
func TestKilledBrokerPushesAgainWithTheNextAttempt(t *testing.T) {
	t.Parallel()
	url, requests := receiver(t, func(p pushed, w http.ResponseWriter, r *http.Request) {
		if p.attempt == "1" || p.attempt == "2" {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, "done") // the broker is there, or is killed late
	})
	b := harness.Start(t,
		harness.Options{Config: strings.Replace(pushTarget("mail", url), "timeout = 60", `timeout = "2s"`, 1)})
	sendHTTP(t, b, http.MethodPatch, "queues/mail",
		`{"policy": {"backoff": [1]}}`) // a lost lease is a failure of a job over HTTP
	id := submitHTTP(t, b, `{"queue": "mail", "args": [1], "retain_for_s": 600}`)
	for _, attempt := range []string{"1", "2"} {
		p := nextPushed(t, requests)
		if p != (pushed{id, "mail", attempt, "[1]"}) {
			t.Fatalf("pushed %+v, want attempt %s of job %s", p, attempt, id)
		}
		b.Crash()
		b.Restart()
	}
	equal(t, "third", nextPushed(t, requests), pushed{id, "mail", "3", "[1]"})
	harness.Eventually(t, func() string {
		_, body, err := b.Get("/api/v1/jobs/" + id)
		check(t, err)
		if !strings.Contains(body, `"result":"done"`) {
			return body
		}
		return ""
	})
}

// submitHTTP submits a job and returns its id.
func submitHTTP(t *testing.T, b *harness.Broker, job string) string {
	t.Helper()
	var made struct{ ID string }
	check(t, json.Unmarshal(sendHTTP(t, b, http.MethodPost, "jobs", job), &made))
	return made.ID
}

// sendHTTP sends a request that must succeed.
func sendHTTP(t *testing.T, b *harness.Broker, method, path, body string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+b.HTTP+"/api/v1/"+path,
		strings.NewReader(body))
	check(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	check(t, err)
	defer func() { _ = resp.Body.Close() }() // it was read
	text, err := io.ReadAll(resp.Body)
	check(t, err)
	if resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	return text
}

func TestReloadChangesPushTargets(t *testing.T) {
	t.Parallel()
	url, requests := receiver(t, func(p pushed, w http.ResponseWriter, _ *http.Request) {
		if p.queue == "bad" {
			w.WriteHeader(http.StatusTeapot)
		}
	})
	b, rewrite := reloadable(t, pushTarget("one", url))
	submitHTTP(t, b, `{"queue": "one", "body": "a"}`)
	equal(t, "body", nextPushed(t, requests).body, "a")
	rewrite(pushTarget("two", url) + pushTarget("bad", url))
	submitHTTP(t, b, `{"queue": "one", "body": "b"}`)
	submitHTTP(t, b, `{"queue": "two", "body": "c"}`)
	equal(t, "body", nextPushed(t, requests).body, "c")
	submitHTTP(t, b, `{"queue": "bad", "body": "d", "max_fails": 1}`)
	equal(t, "body", nextPushed(t, requests).body, "d")
	for path, wants := range map[string][]string{
		"/workers": {
			"push:two", url, "1 done, 0 failed", "push:bad", "0 done, 1 failed", "HTTP 418: 418 I&#39;m a teapot",
		},
		"/metrics": {
			`broker_push_requests_total{outcome="done",target="two"} 1`,
			`broker_push_requests_total{outcome="failed",target="bad"} 1`,
		},
	} {
		harness.Eventually(t, func() string {
			status, body, err := b.Get(path)
			check(t, err)
			for _, want := range wants {
				if status != http.StatusOK || !strings.Contains(body, want) {
					return fmt.Sprintf("%s: %d without %q", path, status, want)
				}
			}
			if strings.Contains(body, "push:one") || strings.Contains(body, `target="one"`) {
				return path + " has the target that was removed"
			}
			return ""
		})
	}
	rewrite(pushTarget("two", "http://shop.example.com/")) // refused: the targets stay
	submitHTTP(t, b, `{"queue": "two", "body": "e"}`)
	equal(t, "body", nextPushed(t, requests).body, "e")
	select {
	case p := <-requests:
		t.Errorf("pushed too: %+v", p)
	case <-time.After(200 * time.Millisecond):
	}
}

// The receivers in docs/push.md do jobs, and refuse those with the signature of another secret.
func TestReceiversOfTheDocumentation(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	root, err := server.Root()
	check(t, err)
	text, err := os.ReadFile(filepath.Join(root, "docs", "push.md"))
	check(t, err)
	for language, c := range map[string]struct {
		file, path string
		argv       func(file, host, port string) []string
	}{
		"php": {"jobs.php", "/jobs.php", func(file, host, port string) []string {
			return []string{"php", "-S", host + ":" + port, file}
		}},
		"js": {"jobs.js", "/", func(file, _, _ string) []string { return []string{"node", file} }},
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			harness.Need(t, map[string]string{"php": "php", "js": "node"}[language])
			example := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(text)
			if example == nil {
				t.Fatal("docs/push.md has no receiver in " + language)
			}
			file := filepath.Join(t.TempDir(), c.file)
			check(t, os.WriteFile(file, example[1], 0o600))
			address, err := server.FreeAddr()
			check(t, err)
			host, port := server.Split(address)
			p := harness.Spawn(t,
				harness.Command{Argv: c.argv(file, host, port), Env: []string{"BROKER_SECRET=s3cret", "PORT=" + port}})
			check(t, server.WaitListening(p.Process, address, harness.Patience))
			target := pushTarget("mail", "http://"+address+c.path)
			b := harness.Start(t, harness.Options{Config: target + "secret = \"s3cret\"\n" +
				strings.ReplaceAll(target, "mail", "wrong") + "secret = \"another\"\n"})
			r := harness.Exec(t, harness.Command{Argv: []string{
				harness.Binary(t), "run", "mail", "[1,2]", "--server", b.HTTP, "--timeout", "2m",
			}})
			equal(t, "result", r.Stdout, "mail: 3")
			r = harness.Exec(t, harness.Command{Argv: []string{
				harness.Binary(t), "run", "wrong", "[1]", "--retries", "0", "--server", b.HTTP, "--timeout", "2m",
			}})
			if r.Code != 8 || !strings.Contains(r.Stderr, "wrong signature") {
				t.Errorf("a wrong signature: exit code %d, %s", r.Code, r.Stderr)
			}
		})
	}
}
