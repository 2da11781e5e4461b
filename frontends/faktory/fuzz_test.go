package faktory

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"broker/frontends/frontendtest"
)

// changing matches the parts of replies that differ between runs: counters of INFO, and the prefix of batch ids.
var changing = regexp.MustCompile(`"(command_count|used_memory_mb)":\d+|b-[a-z2-7]{16}-`)

// talk sends input in pieces to a new front-end and returns the replies, without the parts that change.
func talk(t *testing.T, input []byte, step int) []byte {
	s := frontendtest.Open(t, plain, frontendtest.InMemory)
	c := s.Dial("client")
	c.SendIn(step, input)
	out := c.Rest()
	c.Hangup()
	bystander := dial(s, "bystander", "")
	bystander.Send("QUEUE LATENCY x\r\n")
	bystander.Want("$7\r\n{\"x\":0}\r\n")
	return regexp.MustCompile(`\$\d+\r\n\{"now"`).ReplaceAll(changing.ReplaceAll(out, nil), nil)
}

// The replies do not depend on how the input is split, and other clients are still served.
func FuzzSession(f *testing.F) {
	const hello = "HELLO {\"wid\":\"w\",\"v\":2}\r\n"
	for _, seed := range []string{
		"", "GET / HTTP/1.1\r\n\r\n", hello + "INFO\nEND\nINFO\n",
		hello +
			"PUSH {\"jid\":\"12345678\",\"jobtype\":\"x\",\"args\":[1]}\r\nFETCH default\r\nACK {\"jid\":\"12345678\"}\r\n",
		hello +
			"PUSH {\"jid\":\"12345678\",\"jobtype\":\"x\",\"args\":[],\"custom\":{\"unique_for\":60,\"track\":1}}\r\nFETCH default\r\n" +
			"FAIL {\"jid\":\"12345678\"}\r\nMUTATE {\"cmd\":\"requeue\",\"target\":\"retries\",\"filter\":{\"regexp\":\"*x*\"}}\r\nINFO\r\n",
		hello +
			"BATCH NEW {\"complete\":{\"jobtype\":\"x\",\"args\":[]}}\r\nBATCH COMMIT b-0000000000001\r\nBATCH STATUS b-0000000000001\r\n",
		hello +
			"QUEUE PAUSE a\r\nQUEUE REMOVE *\r\nFLUSH\r\nTRACK GET x\r\nTRACK SET {\"jid\":\"x\"}\r\nBEAT {\"wid\":\"w\",\"current_state\":\"quiet\"}\r\nFETCH a\r\n",
		hello + "PUSHB [{\"jid\":\"12345678\",\"jobtype\":\"x\",\"args\":[],\"at\":\"2031-01-01T00:00:00Z\"},null]\r\n",
	} {
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, input []byte, step int) {
		whole := talk(t, input, max(len(input), 1))
		split := talk(t, input, 1+step&0x3f)
		if !bytes.Equal(whole, split) {
			t.Errorf("%q\nwhole %q\nsplit %q", input, whole, split)
		}
		if out := string(whole); out != "" && (!strings.HasPrefix(out, "+HI ") || !strings.HasSuffix(out, "\r\n")) {
			t.Errorf("%q\nanswered %q", input, out)
		}
	})
}
