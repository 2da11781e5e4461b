package integration_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"broker/integration/harness"
	"broker/integration/server"
)

// tenantsConfig has principals whose tokens are their names.
func tenantsConfig() string {
	var all strings.Builder
	for name, roles := range map[string]string{
		"root": `"admin"`, "guest": "",
		"shop": `"produce:shop", "read:shop", "operate:shop"`, "loud": `"produce:loud", "read:loud", "operate:loud"`,
	} {
		fmt.Fprintf(&all, "[[principal]]\nname = %q\ntoken = \"sha256:%x\"\nroles = [%s]\n", name,
			sha256.Sum256([]byte(name)), roles)
	}
	return all.String()
}

// asked is a request of a principal. No redirect is followed.
type asked struct{ who, method, path, body, key, cookie string }

// reply is the reply to a request.
type reply struct {
	status int
	body   map[string]any
	cookie string
}

var withoutRedirects = &http.Client{
	Transport: &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: 5 * time.Second},
	CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	},
}

// ask sends a request. Any goroutine may call it.
func ask(t *testing.T, b *harness.Broker, a asked) (r reply, err error) {
	req, err := http.NewRequestWithContext(t.Context(), a.method, "http://"+b.HTTP+a.path, strings.NewReader(a.body))
	if err != nil {
		return r, err
	}
	if a.who != "" {
		req.Header.Set("Authorization", "Bearer "+a.who)
	}
	for name, value := range map[string]string{"Idempotency-Key": a.key, "Cookie": a.cookie} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if strings.HasPrefix(a.path, "/login") {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := withoutRedirects.Do(req)
	if err != nil {
		return r, err
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	text, err := io.ReadAll(resp.Body)
	r.status = resp.StatusCode
	_ = json.Unmarshal(text, &r.body) // pages are not JSON
	if cookies := resp.Cookies(); len(cookies) > 0 {
		r.cookie = cookies[0].Name + "=" + cookies[0].Value
	}
	return r, err
}

// wants is ask for a request that must have a status.
func wants(t *testing.T, b *harness.Broker, status int, a asked) reply {
	t.Helper()
	r, err := ask(t, b, a)
	check(t, err)
	if r.status != status {
		t.Fatalf("%+v: %d %v, want %d", a, r.status, r.body, status)
	}
	return r
}

// One principal that takes all it can get evicts nothing of another, and leaves it room.
func TestOneTenantLeavesRoomForTheOthers(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{Durability: "none", Config: tenantsConfig()})
	submit := func(who, key string) asked {
		return asked{who: who, method: "POST", path: "/api/v1/jobs", body: `{"queue":"` + who + `"}`, key: key}
	}
	act := func(who string, delay int) asked {
		return asked{who: who, method: "POST", path: "/api/v1/job-actions", body: fmt.Sprintf(
			`{"action":"delete","filter":{"queue":%q},"delay_s":%d}`, who, delay)}
	}
	login := func(who string) asked { return asked{method: "POST", path: "/login", body: "secret=" + who} }
	page := func(cookie string) asked { return asked{method: "GET", path: "/jobs", cookie: cookie} }
	for _, test := range []struct {
		what  string
		times int
		load  func(i int) asked
		begin func(t *testing.T) (holds func(t *testing.T))
	}{
		{
			"idempotency keys", 9000, func(i int) asked { return submit("loud", fmt.Sprint(i)) },
			func(t *testing.T) func(*testing.T) {
				t.Helper()
				first := wants(t, b, 201, submit("shop", "order"))
				return func(t *testing.T) {
					t.Helper()
					equal(t, "job of the key", wants(t, b, 201, submit("shop", "order")).body["id"], first.body["id"])
				}
			},
		},
		{
			"operations", 400, func(i int) asked { return act("loud", i%4/3*3600) },
			func(t *testing.T) func(*testing.T) {
				t.Helper()
				wants(t, b, 201, submit("shop", ""))
				ended := "/api/v1/operations/" + wants(t, b, 202, act("shop", 0)).body["id"].(string)
				wants(t, b, 200, asked{who: "shop", method: "GET", path: ended + "?wait=30s"})
				wants(t, b, 201, submit("shop", ""))
				pending := "/api/v1/operations/" + wants(t, b, 202, act("shop", 3600)).body["id"].(string)
				return func(t *testing.T) {
					t.Helper()
					wants(t, b, 200, asked{who: "shop", method: "GET", path: ended})
					wants(t, b, 200, asked{who: "shop", method: "DELETE", path: pending})
					after := wants(t, b, 200, asked{who: "shop", method: "GET", path: pending + "?wait=30s"})
					equal(t, "state", after.body["state"], any("cancelled"))
					wants(t, b, 202, act("shop", 3600))
				}
			},
		},
		{
			"sessions of the console", 10_050, func(int) asked { return login("guest") },
			func(t *testing.T) func(*testing.T) {
				t.Helper()
				root, own := wants(t, b, 303, login("root")).cookie, wants(t, b, 303, login("guest")).cookie
				before, err := server.ResidentBytes(b.PID())
				check(t, err)
				return func(t *testing.T) {
					t.Helper()
					wants(t, b, 200, page(root))
					wants(t, b, 303, page(own)) // its oldest one
					wants(t, b, 200, page(wants(t, b, 303, login("shop")).cookie))
					after, err := server.ResidentBytes(b.PID())
					check(t, err)
					if after-before > 64<<20 {
						t.Errorf("%d MiB for sessions", (after-before)>>20)
					}
				}
			},
		},
	} {
		t.Run(test.what, func(t *testing.T) {
			holds := test.begin(t)
			var all sync.WaitGroup
			statuses := make(chan int, test.times)
			for worker := range 8 {
				all.Go(func() { // ends with its share of the load
					for i := worker; i < test.times; i += 8 {
						if r, err := ask(t, b, test.load(i)); err != nil {
							t.Error(err)
						} else {
							statuses <- r.status
						}
					}
				})
			}
			all.Wait()
			close(statuses)
			count := make(map[int]int)
			for status := range statuses {
				count[status]++
			}
			t.Logf("replies by status: %v", count)
			if count[503] > 0 || count[500] > 0 {
				t.Errorf("replies by status: %v", count)
			}
			holds(t)
		})
	}
}

// A client with many addresses of one IPv6 network displaces its own connections, not those of another network.
func TestAnIPv6NetworkHasOneShare(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	if !harness.InNamespaces(t) {
		return
	}
	const granted, room, own = 160, 160/8 + 32, 5
	dial := func(from, to string) *rawConn {
		t.Helper()
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := d.Dial("tcp", to)
		check(t, err)
		t.Cleanup(func() { _ = c.Close() }) // it may be gone
		s := rawOn(t, c)
		s.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		s.wantLine("200 OK")
		return s
	}
	run := func(args ...string) {
		t.Helper()
		out, err := exec.Command("ip", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("ip %v: %v %s", args, err, out)
		}
	}
	run("link", "set", "lo", "up")
	run("-6", "addr", "add", "fd00:2::1/64", "dev", "lo", "nodad")
	for i := range 2 * room {
		run("-6", "addr", "add", fmt.Sprintf("fd00:1::%x/64", i+1), "dev", "lo", "nodad")
	}
	b := prepareWith(t, withDescriptors(t, granted))
	_, port, err := net.SplitHostPort(b.HTTP)
	check(t, err)
	b.HTTP = "[::1]:" + port
	check(t, b.BrokerServer.Start())
	var few []*rawConn
	// Without a login a connection may be idle for 10 s: on a busy machine it takes more than one attempt.
	for quick := false; !quick; {
		begin := time.Now()
		few = nil
		for range own {
			few = append(few, dial("fd00:2::1", b.HTTP))
		}
		for i := range 2 * room {
			dial(fmt.Sprintf("fd00:1::%x", i+1), b.HTTP)
		}
		quick = time.Since(begin) < 8*time.Second
	}
	for _, s := range few {
		if _, err := io.CopyN(io.Discard, s.r, int64(s.r.Buffered())); err != nil {
			t.Error(err)
		}
		check(t, s.SetDeadline(time.Now().Add(harness.Patience)))
		s.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		s.wantLine("200 OK")
	}
}
