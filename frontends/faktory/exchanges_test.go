package faktory

import (
	"regexp"

	"broker/frontends/frontendtest"
)

const newBatch = `BATCH NEW {"success":{"jobtype":"x","args":[]}}` + "\r\n"

var bidInReply = regexp.MustCompile(`b-[^\r]+`)

// ofBatch makes a request about the batch that the client has made before.
func ofBatch(verb string) func(before []byte) string {
	return func(before []byte) string { return "BATCH " + verb + " " + string(bidInReply.Find(before)) + "\r\n" }
}

// exchanges are those of the shared suite.
var exchanges = []frontendtest.Exchange{
	{Command: "PUSH", Send: `PUSH {"jid":"suite-000009","queue":"suite","jobtype":"x","args":[]}` + "\r\n"},
	{Command: "PUSHB", Send: `PUSHB [{"jid":"suite-000009","queue":"suite","jobtype":"x","args":[]}]` + "\r\n"},
	{Command: "FETCH", Send: "FETCH suite\r\n"},
	{Command: "ACK", Before: "FETCH suite\r\n", Send: `ACK {"jid":"suite-000001"}` + "\r\n"},
	{Command: "ACK", Send: `ACK {"jid":"suite-000009"}` + "\r\n"},
	{Command: "FAIL", Before: "FETCH suite\r\n", Send: `FAIL {"jid":"suite-000001"}` + "\r\n"},
	{Command: "FAIL", Send: `FAIL {"jid":"suite-000009"}` + "\r\n"},
	{Command: "BEAT", Send: `BEAT {"wid":"worker"}` + "\r\n"},
	{Command: "INFO", Send: "INFO\r\n"},
	{Command: "FLUSH", Send: "FLUSH\r\n"},
	{Command: "END", Send: "END\r\n"},
	{Command: "MUTATE", Send: `MUTATE {"cmd":"clear","target":"scheduled"}` + "\r\n"},
	{Command: "MUTATE", Send: `MUTATE {"cmd":"kill","target":"retries","filter":{"jids":["suite-000001"]}}` + "\r\n"},
	{Command: "QUEUE", Send: "QUEUE PAUSE suite\r\n"},
	{Command: "QUEUE", Send: "QUEUE PAUSE *\r\n"},
	{Command: "QUEUE", Before: "QUEUE PAUSE suite\r\n", Send: "QUEUE RESUME suite\r\n"},
	{Command: "QUEUE", Send: "QUEUE REMOVE suite\r\n"},
	{Command: "QUEUE", Send: "QUEUE LATENCY suite\r\n"},
	{Command: "BATCH", Send: newBatch},
	{Command: "BATCH", Before: newBatch, Fill: ofBatch("COMMIT")},
	{Command: "BATCH", Before: newBatch, Fill: ofBatch("OPEN")},
	{Command: "BATCH", Before: newBatch, Fill: ofBatch("STATUS")},
	{Command: "BATCH", Send: "BATCH STATUS b-0000000000009\r\n"},
	{Command: "TRACK", Send: "TRACK GET suite-000001\r\n"},
	{Command: "TRACK", Send: "TRACK GET suite-000009\r\n"},
	{Command: "TRACK", Before: "FETCH suite\r\n", Send: `TRACK SET {"jid":"suite-000001","percent":5}` + "\r\n"},
}
