package integration_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"
	"github.com/google/uuid"

	"broker/integration/conveyorclient"
	"broker/integration/harness"
	"broker/integration/server"
)

// exchange sends text on a new connection and reads what comes within a while. It ignores errors.
func exchange(address, text string) {
	conn, err := net.DialTimeout("tcp", address, harness.Patience)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }() // nothing is open on it
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		return
	}
	_, _ = conn.Read(make([]byte, 4096)) // a reply, or none
}

// postTo posts JSON and ignores errors.
func postTo(t *testing.T, address, path, target, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+path,
		strings.NewReader(body))
	check(t, err)
	req.Header.Set("Content-Type", "application/json")
	if target != "" {
		req.Header.Set("Content-Type", "application/x-amz-json-1.0")
		req.Header.Set("X-Amz-Target", "AmazonSQS."+target)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	_, _ = io.Copy(io.Discard, resp.Body)    // as far as it comes
}

// Clients of every protocol meet the faults that a submission can meet.
func TestHostileBrokerIsHostileInEveryProtocol(t *testing.T) {
	t.Parallel()
	for protocol, submit := range map[string]func(t *testing.T, address string){
		"workq": func(_ *testing.T, at string) {
			exchange(at, "add "+uuid.NewString()+" mail 1000 60000 1\r\nx\r\n")
		},
		"beanstalk": func(_ *testing.T, at string) { exchange(at, "put 1 0 60 1\r\nx\r\n") },
		"gearman": func(_ *testing.T, at string) {
			body := "mail\x00\x00x"
			header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 18), uint32(len(body)))
			exchange(at, "\x00REQ"+string(header)+body)
		},
		"faktory": func(t *testing.T, at string) {
			t.Helper()
			c, err := harness.OpenFaktory(&harness.Broker{BrokerServer: &server.BrokerServer{Faktory: at}},
				harness.Patience)
			check(t, err)
			defer func() { _ = c.Close() }() // the connection may be lost
			_ = c.Push(faktory.NewJob("mail", 1))
		},
		"qless": func(t *testing.T, at string) {
			t.Helper()
			c, err := dialQless(at)
			check(t, err)
			defer func() { _ = c.conn.Close() }() // the connection may be lost
			_, _ = c.call("put", "me", "mail", uuid.NewString(), "K", "{}", "0")
		},
		"conveyor": func(t *testing.T, at string) {
			t.Helper()
			c := conveyorclient.Open(at)
			defer func() { _ = c.Close() }() // the connection may be lost
			_ = c.Add(t.Context(), &conveyorclient.Job{Queue: "mail"})
		},
		"http": func(t *testing.T, at string) {
			t.Helper()
			postTo(t, at, "/api/v1/jobs", "", `{"queue": "mail", "args": []}`)
		},
		"sqs": func(t *testing.T, at string) {
			t.Helper()
			postTo(t, at, "/", "CreateQueue", `{"QueueName": "mail"}`)
			postTo(t, at, "/", "SendMessage", `{"QueueUrl": "http://`+at+`/000000000000/mail", "MessageBody": "x"}`)
		},
	} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			at := startHostileAt(t, "drop=0.4,late=0.3,busy=0.1,reorder=0.2,jump=0.1")
			for range 30 {
				submit(t, at[protocol])
			}
			found := make(map[string]int)
			for _, f := range hostileFaults(t, &harness.Broker{BrokerServer: &server.BrokerServer{HTTP: at["http"]}}) {
				if f.Protocol != protocol {
					t.Errorf("fault of %s: %+v", f.Protocol, f)
				}
				switch what, _, _ := strings.Cut(f.Detail, ":"); {
				case f.Fault != "drop":
					found[f.Fault]++
				case what == "reply to the submission":
					found["drop within"]++
				default:
					found["drop before"]++
				}
			}
			for _, kind := range []string{"drop within", "drop before", "late", "busy", "reorder", "jump"} {
				if found[kind] == 0 {
					t.Errorf("no %s: %s", kind, fmt.Sprint(found))
				}
			}
		})
	}
}
