package integration_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/integration/harness"
	"broker/integration/server"
)

// alive checks that the connection still works: it pushes, fetches and acknowledges a job.
func (l *faktoryLink) alive(jid string) {
	l.t.Helper()
	l.expect("OK", fmt.Sprintf("PUSH {\"jid\":%q,\"queue\":\"alive\",\"jobtype\":\"x\",\"args\":[]}\r\n", jid), 1)
	l.expect(jid, "FETCH alive\r\n", 1)
	l.expect("OK", fmt.Sprintf("ACK {\"jid\":%q}\r\n", jid), 1)
}

// badRequests maps the start of an error reply to requests that it refuses.
var badRequests = map[string][]string{
	"-ERR invalid JSON": {
		`PUSH {"jid":"12345678","jobtype":"x","args":[1,2`, `PUSH {"jid":"123456`, `PUSH `, `PUSH [1]`, `PUSH "job"`,
		`PUSH 17`,
		"PUSH {\"jid\":\"12345678\",\"jobtype\":\"\xc3\x28\",\"args\":[]}", "PUSH \xff\xfe",
		`PUSH ` + strings.Repeat("[", 20_000),
		`PUSH {"jid":"12345678","jobtype":"x","args":[` + strings.Repeat(`{"a":`, 20_000) + `1` +
			strings.Repeat("}", 20_000) + `]}`,
		`PUSH {"jid":12345678}`, `PUSH {"jobtype":{}}`, `PUSH {"queue":[]}`, `PUSH {"args":{}}`, `PUSH {"args":"x"}`,
		`PUSH {"retry":"25"}`, `PUSH {"retry":1.5}`, `PUSH {"retry":1e400}`, `PUSH {"reserve_for":"9"}`,
		`PUSH {"reserve_for":[]}`,
		`PUSH {"at":17}`, `PUSH {"created_at":{}}`, `PUSH {"enqueued_at":1}`, `PUSH {"backtrace":"x"}`,
		`PUSH {"custom":[]}`,
		`PUSH {"custom":"x"}`, `PUSH {"failure":[]}`, `PUSH {"failure":{"retry_count":"x"}}`,
		`PUSH {"failure":{"backtrace":"x"}}`,
		`PUSHB {"jid":"12345678"}`, `PUSHB [{"jid":"12345678"`, `PUSHB [1]`, `PUSHB "x"`, `PUSHB [{"jid":1}]`,
		"PUSHB [\"\xff\"]",
		`BATCH NEW {`, `BATCH NEW []`, `BATCH NEW {"success":7}`, `BATCH NEW {"description":7}`,
		"BATCH NEW {\"description\":\"\xff\"}",
		"MUTATE {\"cmd\":\"\xff\"}",
	},
	"-ERR jobs must have": {
		`PUSH {}`, `PUSH null`, `PUSH {"jid":null}`, `PUSH {"jid":"1234567"}`, `PUSH {"jid":"12345678"}`,
		`PUSH {"jid":"12345678","jobtype":"x"}`, `PUSH {"jid":"12345678","jobtype":"x","args":null}`,
	},
	"-ERR jobs cannot be reserved": {`PUSH {"jid":"12345678","jobtype":"x","args":[],"reserve_for":86401}`},
	"-ERR cannot get": {
		`PUSH {"jid":"12345678","jobtype":"x","args":[],"queue":"a b"}`,
		`PUSH {"jid":"12345678","jobtype":"x","args":[],"queue":"ü"}`,
		`PUSH {"jid":"12345678","jobtype":"x","args":[],"queue":"` + strings.Repeat("q", 100_000) + `"}`,
	},
	"-ERR invalid timestamp": {
		`PUSH {"jid":"12345678","jobtype":"x","args":[],"at":"soon"}`,
		`PUSH {"jid":"12345678","jobtype":"x","args":[],"custom":{"expires_at":"soon"}}`,
		`TRACK SET {"jid":"12345678","reserve_until":"soon"}`,
	},
	"-ERR invalid value": {
		`PUSH {"jid":"12345678","jobtype":"x","args":[],"custom":{"unique_for":"long"}}`,
		`PUSH {"jid":"12345678","jobtype":"x","args":[],"custom":{"unique_for":{}}}`,
		`PUSH {"jid":"12345678","jobtype":"x","args":[],"custom":{"unique_for":9,"unique_until":"never"}}`,
		`PUSH {"jid":"12345678","jobtype":"x","args":[],"custom":{"expires_in":[]}}`,
	},
	"-ERR no such batch": {
		`PUSH {"jid":"12345678","jobtype":"x","args":[],"custom":{"bid":"b-0"}}`,
		`PUSH {"jid":"12345678","jobtype":"x","args":[],"custom":{"bid":[]}}`,
		`BATCH COMMIT`, `BATCH OPEN b-1`, `BATCH STATUS nonsense`, `BATCH NEW {"parent_bid":"b-1"}`,
	},
	"-ERR invalid ACK": {`ACK {`, `ACK {}`, `ACK []`, `ACK {"jid":1}`, "ACK {\"jid\":\"\xff\"}", `ACK x`},
	"-ERR invalid FAIL": {
		`FAIL {`, `FAIL []`, `FAIL {"jid":1}`, `FAIL {"jid":"x","message":{}}`, `FAIL {"jid":"x","backtrace":"x"}`,
		"FAIL \xff",
	},
	"-ERR missing JID":   {`FAIL {}`, `FAIL null`, `TRACK SET {}`, `TRACK GET`},
	"-ERR Job not found": {`FAIL {"jid":"nobody-knows"}`, `TRACK SET {"jid":"nobody-knows"}`},
	"-ERR invalid BEAT": {
		`BEAT {`, `BEAT []`, `BEAT {"wid":1}`, `BEAT {"rss_kb":"x"}`, `BEAT {"current_state":1}`, "BEAT \xff",
	},
	"-ERR unknown worker":    {`BEAT {}`, `BEAT null`, `BEAT {"wid":"nobody"}`},
	"-ERR invalid TRACK SET": {`TRACK SET`, `TRACK SET {"percent":"x"}`, `TRACK SET {"jid":1}`},
	"-ERR internal error":    {`PUSH`, `PUSHB`, `ACK`, `FAIL`, `BEAT`, `QUEUE`, `QUEUE PAUSE`, `BATCH`, `TRACK`},
	"-ERR no such QUEUE":     {`QUEUE FOO`, `QUEUE  PAUSE x`},
	"-ERR QUEUE LATENCY":     {`QUEUE LATENCY *`},
	"-ERR must call fetch":   {`FETCH`},
	"-ERR invalid format":    {`MUTATE`},
	"-ERR json": {
		`MUTATE []`, `MUTATE {"cmd":1}`, `MUTATE {"cmd":"kill","target":1}`, `MUTATE {"filter":{"jids":"x"}}`,
	},
	"-ERR unexpected end": {`MUTATE {`},
	"-ERR unknown mutate": {`MUTATE {}`, `MUTATE {"cmd":"KILL","target":"dead"}`},
	"-ERR invalid target": {`MUTATE {"cmd":"kill"}`, `MUTATE {"cmd":"clear","target":"queues"}`},
	"-ERR unknown command": {
		`HELLO {"v":2}`, `push {}`, ``, ` `, "PUSH\t{}", "\x00\x01", `GET / HTTP/1.1`, strings.Repeat("X", 100_000),
	},
}

func TestFaktoryBadInputGetsAnError(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t) // a verb without arguments crashes the reference server
	b := start(t)
	l, other := linkFaktory(t, b), linkFaktory(t, b)
	n := 0
	for want, requests := range badRequests {
		for _, r := range requests {
			l.expect(want, r+"\r\n", 1)
			if n++; n%10 == 0 {
				l.alive(fmt.Sprintf("between-%d", n))
			}
		}
	}
	other.alive("afterwards")
	d := fktState(t, dialFaktory(t, b)).Data
	equal(t, "queues", fmt.Sprint(d.Queues), "map[alive:0]") // no refused request has created a queue
	equal(t, "failures", d.TotalFailures, uint64(0))
	equal(t, "processed", d.TotalProcessed, uint64(n/10+1))
}

// TestFaktoryLineBeyondTheLimit: a line far above the limit is refused with one reply and is not buffered.
func TestFaktoryLineBeyondTheLimit(t *testing.T) {
	harness.BrokerOnly(t) // not parallel: it measures memory
	b := harness.Start(t, harness.Options{Config: "[faktory]\nmax_body = \"1MiB\"\n"})
	l, other := linkFaktory(t, b), linkFaktory(t, b)
	l.alive("before-it")
	before, err := server.ResidentBytes(b.PID())
	check(t, err)
	const over = 11 << 20
	const lines = 40
	for range lines {
		l.expect("-ERR line is longer than 1048576 bytes",
			"PUSH {\"jid\":\"12345678\",\"jobtype\":\"x\",\"args\":[\""+strings.Repeat("x", over)+"\"]}\r\n", 1)
		l.alive("after-it")
	}
	other.alive("the-others")
	after, err := server.ResidentBytes(b.PID())
	check(t, err)
	if grown := after - before; grown > lines*over/4 { // some garbage may remain
		t.Errorf("%d lines of %d MiB cost %d MiB", lines, over>>20, grown>>20)
	}
}

// TestFaktoryClientThatStopsReading: the client costs bounded memory, and its unsent jobs go to other workers.
func TestFaktoryClientThatStopsReading(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{Config: "[http]\nprofiling = true\n"})
	deaf, other := linkFaktory(t, b), linkFaktory(t, b)
	const jobs, size = 400, 256 << 10 // a hundred megabytes
	body := strings.Repeat("x", size)
	for i := range jobs {
		other.expect("OK", fmt.Sprintf(
			"PUSH {\"jid\":\"large-%03d\",\"queue\":\"large\",\"jobtype\":\"x\",\"args\":[%q]}\r\n", i, body), 1)
	}
	before := b.LiveBytes()
	_, err := deaf.conn.Write([]byte(strings.Repeat("FETCH large\r\n", jobs)))
	check(t, err)
	begin := time.Now()
	for i := range 50 {
		other.alive(fmt.Sprintf("beside-%03d", i))
	}
	harness.CheckDuration(t, "50 jobs of another client", time.Since(begin), 5*time.Second)
	harness.Eventually(t, func() string { // jobs that are being read or committed are in memory too
		if grown := b.LiveBytes() - before; grown > 64<<20 {
			return fmt.Sprintf("a client that does not read takes %d MiB", grown>>20)
		}
		return ""
	})
	c := dialFaktory(t, b)
	held := fktState(t, c).Data.Sets["working"]
	if held >= jobs {
		t.Errorf("the client has reserved all %d jobs", held)
	}
	check(t, deaf.conn.Close())
	// Jobs that were not sent are ready again; those that were sent stay reserved.
	harness.Eventually(t, func() string {
		if d := fktState(t, c).Data; d.Sets["working"]+d.Queues["large"] != jobs {
			return fmt.Sprintf("%d reserved and %d waiting, not %d", d.Sets["working"], d.Queues["large"], jobs)
		}
		return ""
	})
	other.expect(`"queue":"large"`, "FETCH large\r\n", 1)
}
