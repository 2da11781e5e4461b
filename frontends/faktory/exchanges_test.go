package faktory

import "broker/frontends/frontendtest"

// exchanges are those of the shared suite.
var exchanges = []frontendtest.Exchange{
	{Command: "PUSH", Send: `PUSH {"jid":"suite-000009","queue":"suite","jobtype":"x","args":[]}` + "\r\n"},
	{Command: "PUSHB", Send: `PUSHB [{"jid":"suite-000009","queue":"suite","jobtype":"x","args":[]}]` + "\r\n"},
	{Command: "FETCH", Send: "FETCH suite\r\n"},
	{Command: "ACK", Before: "FETCH suite\r\n", Send: `ACK {"jid":"suite-000001"}` + "\r\n"},
	{Command: "ACK", Send: `ACK {"jid":"suite-000009"}` + "\r\n"},
	{Command: "FAIL", Before: "FETCH suite\r\n", Send: `FAIL {"jid":"suite-000001"}` + "\r\n"},
	{Command: "FAIL", Send: `FAIL {"jid":"suite-000009"}` + "\r\n"},
	// OK says that there is no job to stop, and like an empty queue that reveals nothing.
	{Command: "BEAT", Send: `BEAT {"wid":"worker"}` + "\r\n", Early: true},
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
	{Command: "BATCH", Send: `BATCH NEW {"success":{"jobtype":"x","args":[]}}` + "\r\n"},
	{Command: "TRACK", Send: "TRACK GET suite-000001\r\n"},
	{Command: "TRACK", Send: "TRACK GET suite-000009\r\n"},
	{Command: "TRACK", Before: "FETCH suite\r\n", Send: `TRACK SET {"jid":"suite-000001","percent":5}` + "\r\n"},
}
