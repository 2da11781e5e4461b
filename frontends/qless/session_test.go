package qless

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/redcon"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

// scriptStart is the part of the script that the front-end needs to recognize it.
const scriptStart = "-- Current SHA: 0123456789abcdef0123456789abcdef01234567\n-- This is a generated file\nreturn 1\n"

var scriptSHA = func() string {
	sum := sha1.Sum([]byte(scriptStart))
	return hex.EncodeToString(sum[:])
}()

func started(o Options) frontendtest.Maker {
	return func(b core.Broker) frontends.Frontend { return start(access.Unrestricted(b, core.Qless), o) }
}

func start(b *access.Guard, o Options) *Frontend {
	f := New(b, o)
	if err := f.Start(); err != nil {
		panic(err)
	}
	return f
}

// plain is the front-end with the default options.
func plain(b core.Broker) frontends.Frontend { return started(Options{})(b) }

// conn is a client of Redis in a test.
type conn struct {
	*frontendtest.Client
	t testing.TB
}

func dial(t testing.TB, s *frontendtest.Stage) conn {
	t.Helper()
	c := conn{s.Dial("client"), t}
	if got := c.do("SCRIPT", "LOAD", scriptStart); got != scriptSHA {
		t.Fatalf("script load: %q", got)
	}
	return c
}

// setup opens a stage with one client.
func setup(t testing.TB, settings ...frontendtest.Setting) (*frontendtest.Stage, conn) {
	t.Helper()
	s := frontendtest.Open(t, plain, settings...)
	return s, dial(t, s)
}

func request(args ...string) []byte {
	b := redcon.AppendArray(nil, len(args))
	for _, a := range args {
		b = redcon.AppendBulkString(b, a)
	}
	return b
}

// reply reads one reply and formats it: strings unchanged, integers with a colon, nil as (nil), errors with a minus,
// lists in brackets.
func (c conn) reply() string {
	c.t.Helper()
	line := strings.TrimSuffix(c.ReadUntil("\r\n"), "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '$':
		if n < 0 {
			return "(nil)"
		}
		return strings.TrimSuffix(string(c.Read(n+2)), "\r\n")
	case '*':
		var parts []string
		for range n {
			parts = append(parts, c.reply())
		}
		return fmt.Sprintf("[%s]", strings.Join(parts, " "))
	case '+':
		return line[1:]
	}
	return line
}

// do sends a command and reads its reply.
func (c conn) do(args ...string) string {
	c.t.Helper()
	c.SendBytes(request(args...))
	return c.reply()
}

// call calls an operation. Words are separated by spaces; an argument may also be a list of words.
func (c conn) call(words ...string) string {
	c.t.Helper()
	return c.do(append([]string{"EVALSHA", scriptSHA, "0"}, words...)...)
}

// want calls an operation and compares the reply. It compares an error without the surrounding text of Redis.
func (c conn) want(reply string, words ...string) {
	c.t.Helper()
	got := c.call(words...)
	got = strings.TrimPrefix(got, "-ERR user_script:1: ")
	got = strings.TrimSuffix(got, " script: "+scriptSHA+", on @user_script:1.")
	if got != reply {
		c.t.Errorf("%q\n got %s\nwant %s", words, got, reply)
	}
}

var dialect = frontendtest.Dialect{
	New: plain, AtLeader: true,
	Greet: func(c *frontendtest.Client) {
		c.SendBytes(request("SCRIPT", "LOAD", scriptStart))
		c.Want("$40\r\n" + scriptSHA + "\r\n")
	},
	LeaseFor: 0,
	SubmitRequest: func(n int, queue, body string) []byte {
		data := string(appendText(nil, body))
		return request("EVALSHA", scriptSHA, "0", "put", strconv.Itoa(n), "me", queue, "job-"+strconv.Itoa(n), "K",
			data, "0")
	},
	SubmitReply: func(c *frontendtest.Client, n int) {
		jid := "job-" + strconv.Itoa(n)
		c.Want(fmt.Sprintf("$%d\r\n%s\r\n", len(jid), jid))
	},
	Lease: func(c *frontendtest.Client, queue string) (frontendtest.Leased, bool) {
		c.SendBytes(request("EVALSHA", scriptSHA, "0", "pop", "1000", queue, "w", "1"))
		head := c.ReadUntil("\r\n")
		size, err := strconv.Atoi(strings.Trim(head, "$\r\n"))
		if err != nil {
			panic(head)
		}
		text := c.Read(size + 2)
		var jobs []struct{ Jid, Queue, Data string }
		if err := json.Unmarshal(text[:size], &jobs); err != nil || len(jobs) == 0 {
			return frontendtest.Leased{}, false
		}
		body, err := decode(jobs[0].Data)
		if err != nil {
			panic(err)
		}
		return frontendtest.Leased{ID: jobs[0].Jid, Queue: jobs[0].Queue, Body: body.(string)}, true
	},
	Complete: func(c *frontendtest.Client, job frontendtest.Leased) {
		c.SendBytes(request("EVALSHA", scriptSHA, "0", "complete", "1000", job.ID, "w", job.Queue, "{}"))
		c.Want("$8\r\ncomplete\r\n")
	},
	Ping:      request("PING"),
	Pong:      func(c *frontendtest.Client) { c.Want("+PONG\r\n") },
	Commands:  slices.Concat(slices.Collect(maps.Keys(commands)), slices.Collect(maps.Keys(redisCommands))),
	Exchanges: exchanges(),
	Garbage: [][]byte{
		[]byte("\r\n"), []byte("*\r\n"), []byte("*-2\r\n"), []byte("*1\r\n$-7\r\n"), []byte("*1\r\n:1\r\n"),
		[]byte("$3\r\nfoo\r\n"),
		[]byte("*99999999999\r\n"), []byte("*1\r\n$99999999999999\r\n"), []byte("GET \"x\r\n"),
		bytes.Repeat([]byte("x"), 70_000),
		[]byte("*3\r\n$7\r\nEVALSHA\r\n$1\r\nx\r\n$1\r\n0\r\n"), []byte("\x00\xff\xfe\r\n"),
	},
	Oversize: []byte("*2\r\n$4\r\nPING\r\n$50000000\r\n"),
}

func TestSuite(t *testing.T) {
	t.Parallel()
	frontendtest.Run(t, dialect)
}

func TestUnknownScriptsAreRefusedInRedisWords(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, plain, frontendtest.InMemory)
	c := conn{s.Dial("client"), t}
	c.SendBytes(request("EVALSHA", scriptSHA, "0", "get", "1", "x"))
	c.Want("-NOSCRIPT No matching script. Please use EVAL.\r\n")
	for text, want := range map[string]string{
		"return 1":                           "this server runs the Qless script only",
		"redis.call('zadd', 'ql:queues', 1)": "separate scripts of Qless before 0.9",
		"local Qless = { ns = 'ql:' }\nlocal QlessJob = {}\nreturn Qless.queue(ARGV[1])": "is a plugin",
		scriptStart + "local QlessJob = {}\nreturn 1":                                    "is a plugin",
	} {
		if got := c.do("SCRIPT", "LOAD", text); !strings.Contains(got, want) {
			t.Errorf("%q: %s", text, got)
		}
		if got := c.do("EVAL", text, "0", "get", "1"); !strings.Contains(got, want) {
			t.Errorf("%q: %s", text, got)
		}
	}
	if got := c.do("EVAL", "local QlessAPI = {}", "0", "length", "1", "q"); got != ":0" {
		t.Errorf("eval of the script: %s", got)
	}
	if got := c.do("EVAL", scriptStart, "0", "length", "1", "q"); got != ":0" {
		t.Errorf("eval of the script: %s", got)
	}
	if got := c.do("SCRIPT", "EXISTS", scriptSHA, "00"); got != "[:1 :0]" {
		t.Errorf("exists: %s", got)
	}
	c.do("SCRIPT", "FLUSH")
	if got := c.do("EVALSHA", scriptSHA, "0", "length", "1", "q"); got != "-"+noScript {
		t.Errorf("after a flush: %s", got)
	}
}

func TestRedisCommands(t *testing.T) {
	t.Parallel()
	_, c := setup(t, frontendtest.InMemory)
	for _, row := range []struct{ command, want string }{
		{"PING", "PONG"},
		{"PING hi", "hi"},
		{"ECHO hi", "hi"},
		{"SELECT 0", "OK"},
		{"SELECT 1", "-ERR DB index is out of range"},
		{"SELECT x", "-ERR value is not an integer or out of range"},
		{"CLIENT SETNAME me", "OK"},
		{"CLIENT SETNAME", "-ERR wrong number of arguments for 'client|setname' command"},
		{"CLIENT SETNAME \u00e9", "-ERR Client names cannot contain spaces, newlines or special characters."},
		{"CLIENT GETNAME", "me"},
		{"CLIENT SETINFO LIB-NAME x", "OK"},
		{"AUTH default secret", "OK"},
		{"AUTH other secret", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"SCRIPT LOAD", "-ERR wrong number of arguments for 'script|load' command"},
		{"SCRIPT LOAD a b", "-ERR wrong number of arguments for 'script|load' command"},
		{"SCRIPT EXISTS", "-ERR wrong number of arguments for 'script|exists' command"},
		{"SCRIPT NOPE", "-ERR unknown subcommand 'NOPE'. Try SCRIPT HELP."},
		{"UNSUBSCRIBE", "[unsubscribe (nil) :0]"},
		{"PUNSUBSCRIBE", "[punsubscribe (nil) :0]"},
		{
			"AUTH secret",
			"-ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
		},
		{"HELLO 3", "-ERR unknown command 'HELLO', with args beginning with: '3' "},
		{"GET x y", "-ERR unknown command 'GET', with args beginning with: 'x' 'y' "},
		{"PUBLISH a", "-ERR wrong number of arguments for 'publish' command"},
		{"PUBLISH a b", ":0"},
		{"FLUSHDB", "-ERR FLUSHDB is disabled: the setting qless.allow_flush is off"},
		{"EXEC", "-ERR EXEC without MULTI"},
		{"DISCARD", "-ERR DISCARD without MULTI"},
		{"MULTI", "OK"},
		{"MULTI", "-ERR MULTI calls can not be nested"},
		{"ZCARD ql:q:q-work", "QUEUED"},
		{"ZCARD ql:q:q-locks", "QUEUED"},
		{"EXEC", "[:0 :0]"},
		{"MULTI", "OK"},
		{"SUBSCRIBE a", "QUEUED"},
		{"UNSUBSCRIBE a", "QUEUED"},
		{"EXEC", "[[subscribe a :1] [unsubscribe a :0]]"},
		{"MULTI", "OK"},
		{"EXEC", "[]"},
		{"MULTI", "OK"},
		{"DISCARD", "OK"},
		{"MULTI", "OK"},
		{"NOPE", "-ERR unknown command 'NOPE', with args beginning with: "},
		{"EXEC", "-EXECABORT Transaction discarded because of previous errors."},
		{"ZSCORE ql:q:q-recur r", "(nil)"},
		{
			"EVALSHA " + scriptSHA + " 1 key get 1 x",
			"-ERR user_script:1: No Keys should be provided script: " + scriptSHA + ", on @user_script:1.",
		},
		{"EVALSHA " + scriptSHA + " 9 get", "-ERR Number of keys can't be greater than number of args"},
		{"EVALSHA " + scriptSHA + " -1 get", "-ERR Number of keys can't be negative"},
		{"EVALSHA " + scriptSHA + " x get", "-ERR value is not an integer or out of range"},
		{"EVALSHA unknown x get", "-ERR value is not an integer or out of range"},
		{"EVALSHA unknown 0 get", "-" + noScript},
		{"QUIT", "OK"},
	} {
		if got := c.do(strings.Fields(row.command)...); got != row.want {
			t.Errorf("%s\n got %s\nwant %s", row.command, got, row.want)
		}
	}
	c.WantClosed()
}

func TestPasswordIsRequired(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, started(Options{Options: frontends.Options{Password: "secret"}}), frontendtest.InMemory)
	c := conn{s.Dial("client"), t}
	for _, row := range []struct{ command, want string }{
		{"PING", "-NOAUTH Authentication required."},
		{"AUTH wrong", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"AUTH other secret", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"PING", "-NOAUTH Authentication required."},
		{"AUTH default secret", "OK"},
		{"PING", "PONG"},
		{"RESET", "RESET"},
		{"PING", "-NOAUTH Authentication required."},
	} {
		if got := c.do(strings.Fields(row.command)...); got != row.want {
			t.Errorf("%s\n got %s\nwant %s", row.command, got, row.want)
		}
	}
}

func TestJobsSurviveARestart(t *testing.T) {
	t.Parallel()
	s, c := setup(t)
	c.call("config.set", "1", "heartbeat", "20")
	c.call("put", "1", "me", "q", "a", "K", `{"x":1}`, "0", "tags", `["t"]`, "priority", "3")
	c.call("put", "2", "me", "q", "b", "K", "{}", "0", "depends", `["a"]`)
	c.call("put", "2", "me", "q", "late", "K", "{}", "100")
	c.call("pop", "3", "q", "w", "1")
	c.call("put", "4", "me", "q", "f", "K", "{}", "0")
	c.call("pop", "5", "q", "w2", "1")
	c.call("fail", "6", "f", "w2", "group", "message")
	c.call("track", "6", "track", "b")
	c.call("recur", "6", "r", "rec", "K", "[]", "interval", "10", "5")
	c.call("pause", "6", "closed")
	questions := [][]string{
		{"get", "a"},
		{"get", "b"},
		{"get", "late"},
		{"get", "f"},
		{"recur.get", "rec"},
		{"config.get"},
		{"queues"},
		{"workers"},
		{"workers", "w"},
		{"track"},
		{"failed"},
		{"failed", "group"},
		{"tag", "get", "t"},
		{"stats", "q", "6"},
		{"jobs", "recurring", "r"},
		{"jobs", "running", "q"},
		{"length", "q"},
		{"tag", "top"},
	}
	ask := func(c conn) (answers []string) {
		for _, q := range questions {
			answers = append(answers, c.call(append([]string{q[0], "7"}, q[1:]...)...))
		}
		return answers
	}
	before := ask(c)
	s.Restart()
	c = dial(t, s)
	for i, after := range ask(c) {
		if after != before[i] {
			t.Errorf("%q\n got %s\nwant %s", questions[i], after, before[i])
		}
	}
	c.want("waiting", "complete", "8", "a", "w", "q", "{}", "next", "r")
}

func TestRepliesWaitForTheirCommit(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, plain, frontendtest.NeverCommits)
	c := s.Dial("client")
	c.SendBytes(request("SCRIPT", "LOAD", scriptStart))
	c.Want("$40\r\n" + scriptSHA + "\r\n")
	listener := s.Dial("listener")
	listener.SendBytes(request("SUBSCRIBE", "ql:log"))
	listener.Want("*3\r\n$9\r\nsubscribe\r\n$6\r\nql:log\r\n:1\r\n")
	c.SendBytes(request("EVALSHA", scriptSHA, "0", "put", "1", "me", "q", "a", "K", "{}", "0"))
	listener.SendBytes(request("PING")) // makes the session fetch the message
	if c.Out().Held() != 1 || listener.Out().Held() != 1 {
		t.Errorf("%d replies and %d messages are held", c.Out().Held(), listener.Out().Held())
	}
}

func TestTransactionRunsItsCommandsInOrder(t *testing.T) {
	t.Parallel()
	s, c := setup(t, frontendtest.InMemory)
	f := s.Front.(*Frontend)
	c.do("MULTI")
	c.call("put", "1", "me", "q", "a", "K", "{}", "0")
	c.do("ZCARD", "ql:q:q-work")
	c.call("pop", "1", "q", "w", "1")
	c.do("INFO")
	c.call("nope", "1")
	c.call("length", "1", "q")
	got := c.do("EXEC")
	if !strings.HasPrefix(got, "[a :1 [{") || !strings.Contains(got, "jobs:1") ||
		!strings.Contains(got, "Unknown command nope") || !strings.HasSuffix(got, " :1]") {
		t.Errorf("exec: %s", got)
	}
	if !f.mu.TryLock() {
		t.Fatal("the lock is held after EXEC")
	}
	f.mu.Unlock()
	c.want(":1", "length", "1", "q")
}

func TestHTTPRequestClosesTheConnection(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"POST / HTTP/1.1\r\n", "Host: 127.0.0.1:6379\r\n"} {
		s, c := setup(t, frontendtest.InMemory)
		c.SendBytes([]byte(line + "EVALSHA " + scriptSHA + " 0 put 1 me q j K {} 0\r\n"))
		c.WantClosed()
		dial(t, s).want(":0", "length", "1", "q")
	}
}

func TestNullAndEmptyArraysAreIgnored(t *testing.T) {
	t.Parallel()
	_, c := setup(t, frontendtest.InMemory)
	c.SendBytes([]byte("*-1\r\n*0\r\n\r\nPING\r\n"))
	c.Want("+PONG\r\n")
}

func TestMessagesArriveInTheOrderOfTheirPatterns(t *testing.T) {
	t.Parallel()
	s, c := setup(t, frontendtest.InMemory)
	listener := conn{s.Dial("listener"), t}
	for _, pattern := range []string{"ql:*", "*", "ql:l*", "ql:lo?", "ql:[l]og"} {
		listener.do("PSUBSCRIBE", pattern)
	}
	listener.do("SUBSCRIBE", "ql:log")
	c.call("config.unset", "1", "x")
	const payload = `{"event":"config_unset","option":"x"}`
	want := []string{"[message ql:log " + payload + "]"}
	for _, pattern := range []string{"*", "ql:*", "ql:[l]og", "ql:l*", "ql:lo?"} {
		want = append(want, "[pmessage "+pattern+" ql:log "+payload+"]")
	}
	for _, w := range want {
		if got := listener.reply(); got != w {
			t.Errorf(" got %s\nwant %s", got, w)
		}
	}
}
