package wiretap

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"broker/frontends/gearman/packet"
)

// req and res are Gearman packets of a client and of a server.
func req(typ packet.Type, fields ...string) string {
	return string(packet.Append(nil, packet.RequestMagic, typ, fields...))
}

func res(typ packet.Type, fields ...string) string {
	return string(packet.Append(nil, packet.AnswerMagic, typ, fields...))
}

// conversations are requests and replies of each protocol, cut correctly.
var conversations = map[string]struct{ requests, replies []string }{
	"beanstalk": {
		[]string{
			"use mail\r\n", "put 0 0 60 4\r\na\r\nb\r\n", "reserve-with-timeout 3\r\n", "stats-job 17\r\n",
			"release  17 0 0\r\n", "quit\r\n",
		},
		[]string{
			"USING mail\r\n", "INSERTED 17\r\n", "RESERVED 17 4\r\na\r\nb\r\n", "OK 8\r\n---\nid: \r\n", "RELEASED\r\n",
			"TIMED_OUT\r\n",
		},
	},
	"workq": {
		[]string{
			"add 6ba7b810-9dad-41d1-80b4-00c04fd430c4 ping 1000 60000 4 -priority=3\r\npong\r\n",
			"lease ping pong 500\r\n", "inspect queues 0 10\r\n",
		},
		[]string{
			"+OK\r\n", "+OK 1\r\n6ba7b810-9dad-41d1-80b4-00c04fd430c4 ping 1000 4\r\npong\r\n",
			"+OK 2\r\nping 1\r\nready-len 1\r\npong 1\r\nready-len 0\r\n", "-TIMEOUT\r\n",
		},
	},
	"faktory": {
		[]string{
			"HELLO {\"v\":2}\r\n", "PUSH {\"jid\":\"a\",\"args\":[]}\r\n", "FETCH critical default\n",
			"ACK {\"jid\":\"a\"}\r\n",
		},
		[]string{"+HI {\"v\":2}\r\n", "+OK\r\n", "$11\r\n{\"jid\":\"a\"}\r\n", "$-1\r\n", "-ERR unknown\r\n"},
	},
	"qless": {
		[]string{
			"*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$1\r\nx\r\n", "PING\r\n",
			"*7\r\n$7\r\nEVALSHA\r\n$1\r\ns\r\n$1\r\n0\r\n$3\r\nget\r\n$1\r\n5\r\n$1\r\nj\r\n$1\r\nk\r\n",
		},
		[]string{"$1\r\nx\r\n", "+PONG\r\n", "*2\r\n*1\r\n:1\r\n$-1\r\n", "*-1\r\n", "-NOSCRIPT no\r\n"},
	},
	"gearman": {
		[]string{
			req(packet.CanDo, "rev"), req(packet.SubmitJob, "rev", "u", "body"), "status\r\n",
			req(packet.WorkComplete, "H:x:1", "ydob"),
		},
		[]string{
			res(packet.JobCreated, "H:x:1"), res(packet.Noop), "rev\t0\t0\t1\n.\n",
			res(packet.WorkComplete, "H:x:1", "ydob"),
		},
	},
}

// cutAll cuts all of in, which comes in pieces of step bytes.
func cutAll(in string, step int, cut func([]byte) (string, int, error)) (parts []string, err error) {
	var have []byte
	for len(in) > 0 {
		n := min(step, len(in))
		have, in = append(have, in[:n]...), in[n:]
		for len(have) > 0 {
			part, n, err := cut(have)
			if err != nil {
				return parts, err
			}
			if n == 0 {
				break
			}
			parts, have = append(parts, part), have[n:]
		}
	}
	if len(have) > 0 {
		err = fmt.Errorf("%q is left", have)
	}
	return parts, err
}

func TestConversationsAreSplitIntoMessages(t *testing.T) {
	t.Parallel()
	for name, c := range conversations {
		p := protocols[name]
		for _, step := range []int{1, 1 << 20} {
			var requests []request
			got, err := cutAll(strings.Join(c.requests, ""), step, func(in []byte) (string, int, error) {
				r, n, err := p.request(in)
				if n > 0 {
					requests = append(requests, r)
				}
				return string(r.raw), n, err
			})
			if err != nil || !slices.Equal(got, c.requests) {
				t.Errorf("%s, pieces of %d: requests %q, %v", name, step, got, err)
			}
			at := 0
			got, err = cutAll(strings.Join(c.replies, ""), step, func(in []byte) (string, int, error) {
				asked := &requests[min(at, len(requests)-1)]
				if name == "gearman" { // CAN_DO has no reply, and NOOP is none
					asked = &requests[min(at+1, 2)]
					if at == 1 || at == 3 {
						asked = nil
					} else if at == 2 {
						asked = &requests[2]
					}
				}
				r, n, err := p.reply(in, asked)
				if n > 0 {
					at++
				}
				return string(r.raw), n, err
			})
			if err != nil || !slices.Equal(got, c.replies) {
				t.Errorf("%s, pieces of %d: replies %q, %v", name, step, got, err)
			}
		}
	}
}

// The comparison needs these properties.
func TestPropertiesOfRequests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		protocol, raw string
		want          string
	}{
		{"beanstalk", "put 0 0 60 1\r\na\r\n", `put kind 3 id "" creates [] names []`},
		{"beanstalk", "release  17 0 0\r\n", `release kind 0 id "17" creates [] names []`},
		{"beanstalk", "reserve\r\n", `reserve kind 2 id "" creates [] names []`},
		{"beanstalk", "stats\r\n", `stats kind 5 id "" creates [] names []`},
		{"workq", "run id1 ping 1 1 1\r\na\r\n", `run kind 4 id "" creates [id1] names []`},
		{"workq", "complete id1 1\r\na\r\n", `complete kind 0 id "" creates [] names [id1]`},
		{"workq", "inspect server\r\n", `inspect kind 5 id "" creates [] names []`},
		{"faktory", "PUSHB [{\"jid\":\"a\"},{\"jid\":\"b\"}]\r\n", `PUSHB kind 0 id "" creates [a b] names []`},
		{"faktory", "FAIL {\"jid\":\"a\"}\r\n", `FAIL kind 0 id "" creates [] names [a]`},
		{"faktory", "PUSH nonsense\r\n", `PUSH kind 0 id "" creates [] names []`},
		{"gearman", req(packet.WorkComplete, "H:x:1", "out"), `WORK_COMPLETE kind 1 id "H:x:1" creates [] names []`},
		{"gearman", req(packet.GetStatus, "H:x:1"), `GET_STATUS kind 0 id "H:x:1" creates [] names []`},
		{"qless", "EVALSHA s 0 put 5 worker queue jid klass {} 0\r\n", `put kind 0 id "" creates [jid] names []`},
		{"qless", "EVALSHA s 0 complete 5 jid worker queue {}\r\n", `complete kind 0 id "" creates [] names [jid]`},
		{"qless", "SUBSCRIBE ql:log\r\n", `SUBSCRIBE kind 1 id "" creates [] names []`},
	} {
		r, _, err := protocols[c.protocol].request([]byte(c.raw))
		got := fmt.Sprintf("%s kind %d id %q creates %v names %v", r.verb, r.kind, r.id.of(r.raw), r.creates, r.names)
		if err != nil || got != c.want {
			t.Errorf("%q: %s, %v; want %s", c.raw, got, err, c.want)
		}
	}
}

func TestNormalFormsHideAllowedDifferences(t *testing.T) {
	t.Parallel()
	sha := strings.Repeat("0a", 20)
	for _, c := range []struct{ protocol, verb, a, b string }{
		{
			"beanstalk", "stats-job", "OK 30\r\n---\nid: 1\ntube: a\nage: 3\n\r\n",
			"OK 31\r\n---\nid: 22\ntube: a\nage: 4\n\r\n",
		},
		{
			"faktory", "FETCH", "$60\r\n{\"jid\":\"a\",\"queue\":\"q\",\"enqueued_at\":\"1\",\"created_at\":\"2\"}\r\n",
			"$24\r\n{\"queue\":\"q\",\"jid\":\"a\"}\r\n",
		},
		{"beanstalk", "list-tubes-watched", "OK 14\r\n---\n- b\n- a\n\r\n", "OK 14\r\n---\n- a\n- b\n\r\n"},
		{
			"qless", "track", "-ERR user_script:111: Track(): no job script: " + sha + ", on @user_script:111.\r\n",
			"-ERR user_script:1: Track(): no job script: " + sha + ", on @user_script:1.\r\n",
		},
		{"qless", "track", "-ERR Error running script (call to f_" + sha +
			"): @user_script:111: user_script:111: Track(): no job \r\n", "-ERR user_script:1: Track(): no job\r\n"},
		{
			"workq", "inspect", "+OK 1\r\nx 1\r\ncreated-at 2026-01-02T03:04:05Z\r\n",
			"+OK 1\r\nx 1\r\ncreated-at 2027-01-02T03:04:05Z\r\n",
		},
	} {
		p := protocols[c.protocol]
		if a, b := p.normal(&request{verb: c.verb}, c.a), p.normal(&request{verb: c.verb}, c.b); a != b {
			t.Errorf("%s: %q and %q", c.protocol, a, b)
		}
	}
	if a, b := (faktory{}).normal(nil,
		"$9\r\n{\"jid\":1}\r\n"), (faktory{}).normal(nil, "$9\r\n{\"jid\":2}\r\n"); a == b {
		t.Errorf("different jobs are equal: %q", a)
	}
}

// FuzzProtocols cuts arbitrary bytes: no panic, no part outside of the input, and the same cuts byte by byte.
func FuzzProtocols(f *testing.F) {
	for name, c := range conversations {
		f.Add(name, strings.Join(c.requests, ""))
		f.Add(name, strings.Join(c.replies, ""))
	}
	f.Fuzz(func(t *testing.T, name, in string) {
		p := protocols[name]
		if p == nil || len(in) > 1<<12 {
			return
		}
		for _, cut := range []func(b []byte) (string, int, error){
			func(b []byte) (string, int, error) {
				r, n, err := p.request(b)
				if r.id.to > len(r.raw) {
					t.Fatalf("id %v of %q", r.id, r.raw)
				}
				return string(r.raw), n, err
			},
			func(b []byte) (string, int, error) {
				r, n, err := p.reply(b, nil)
				if n > 0 {
					_ = p.normal(nil, r.id.without(r.raw))
				}
				return string(r.raw), n, err
			},
		} {
			whole, _ := cutAll(in, len(in)+1, cut)
			split, _ := cutAll(in, 1, cut)
			if !slices.Equal(whole, split) {
				t.Fatalf("whole %q, byte by byte %q", whole, split)
			}
		}
	})
}
