package sqs

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

// onNodes runs a test at a leader and two nodes that follow. ask sends a request of a client of the leader (0) or of a
// node, and returns the body of the reply.
func onNodes(t *testing.T, test func(leader *Frontend, ask func(node, status int, action, parameters string) string)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		leader, nodes := frontendtest.OpenNodes(t,
			func(b core.Broker) frontends.Frontend { return suiteFront(t, b, nil) },
			func(b core.Broker, l frontends.Leader) frontends.Frontend { return suiteFront(t, b, l) }, 2)
		var clients []*frontendtest.Client
		for _, s := range append([]*frontendtest.Stage{leader}, nodes...) {
			clients = append(clients, s.Dial("client"))
		}
		test(leader.Front.(sharedHTTP).Shared.(*Frontend), func(node, status int, action, parameters string) string {
			t.Helper()
			clients[node].SendBytes(suiteRequest(action, parameters))
			got, body := clients[node].HTTPResponse()
			if got != status {
				t.Fatalf("%s %s at %d: %d %s", action, parameters, node, got, body)
			}
			return string(body)
		})
	})
}

// The settings of a queue are those of all nodes, whichever changes them.
func TestQueuesAreTheSameAtAllNodes(t *testing.T) {
	t.Parallel()
	onNodes(t, func(_ *Frontend, ask func(int, int, string, string) string) {
		const url = `"QueueUrl":"` + suiteURL + `"`
		long := `{` + url + `,"MessageBody":"` + strings.Repeat("x", 2000) + `"}`
		ask(1, http.StatusOK, "CreateQueue", `{"QueueName":"suite"}`)
		for node := range 3 {
			ask(node, http.StatusOK, "SendMessage", long)
			if all := ask(node, http.StatusOK, "ListQueues", `{}`); !strings.Contains(all, suiteURL) {
				t.Errorf("queues at %d: %s", node, all)
			}
		}
		ask(2, http.StatusOK, "SetQueueAttributes", `{`+url+`,"Attributes":{"MaximumMessageSize":"1024"}}`)
		for node := range 3 {
			ask(node, http.StatusBadRequest, "SendMessage", long)
			if m := ask(node, http.StatusOK, receiveAction, `{`+url+`}`); !strings.Contains(m, "xxx") {
				t.Errorf("received at %d: %s", node, m)
			}
		}
		ask(0, http.StatusOK, "DeleteQueue", `{`+url+`}`)
		for node := range 3 {
			ask(node, http.StatusBadRequest, "SendMessage", `{`+url+`,"MessageBody":"x"}`)
		}
	})
}

func TestAttemptIsRepeatedAtAnotherNode(t *testing.T) {
	t.Parallel()
	onNodes(t, func(_ *Frontend, ask func(int, int, string, string) string) {
		const url = `"QueueUrl":"` + suiteURL + `.fifo"`
		ask(1, http.StatusOK, "CreateQueue", `{"QueueName":"suite.fifo","Attributes":{"FifoQueue":"true"}}`)
		ask(1, http.StatusOK, "SendMessage",
			`{`+url+`,"MessageBody":"once","MessageGroupId":"g","MessageDeduplicationId":"d"}`)
		for node := range 3 {
			m := ask(node, http.StatusOK, receiveAction, `{`+url+`,"ReceiveRequestAttemptId":"again"}`)
			if !strings.Contains(m, "once") {
				t.Errorf("attempt at %d: %s", node, m)
			}
			if m := ask(node, http.StatusOK, receiveAction, `{`+url+`}`); strings.Contains(m, "once") {
				t.Errorf("received twice at %d: %s", node, m)
			}
		}
	})
}

func TestLeaderKnowsWhatNodesHaveServed(t *testing.T) {
	t.Parallel()
	onNodes(t, func(leader *Frontend, ask func(int, int, string, string) string) {
		const url = `"QueueUrl":"` + suiteURL + `"`
		ask(0, http.StatusOK, "CreateQueue", `{"QueueName":"suite"}`)
		ask(1, http.StatusOK, "SendMessage", `{`+url+`,"MessageBody":"x","MessageGroupId":"g"}`)
		ask(2, http.StatusOK, "SendMessage", `{`+url+`,"MessageBody":"x"}`)
		ask(2, http.StatusBadRequest, "SendMessage", `{`+url+`}`)
		if !leader.known("suite").Fair {
			t.Error("the groups of the queue take no turns")
		}
		time.Sleep(2 * countEvery) //nolint:forbidigo // bubble time
		all := leader.Actions()
		i := slices.IndexFunc(all, func(c ActionCount) bool { return c.Action == "SendMessage" })
		if i < 0 || all[i].Done != 2 || all[i].Refused != 1 {
			t.Errorf("counted %+v", all)
		}
	})
}

// The time of a node is an estimate of the leader's, and may be ahead of it.
func TestMessageHasTheIDThatANodeSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, nodes := frontendtest.OpenNodes(t,
			func(b core.Broker) frontends.Frontend { return suiteFront(t, b, nil) },
			func(b core.Broker, l frontends.Leader) frontends.Frontend { return suiteFront(t, ahead{b}, l) }, 1)
		c := nodes[0].Dial("client")
		ask := func(action, parameters string) (reply struct {
			MessageID string `json:"MessageId"`
			Messages  []struct {
				MessageID string `json:"MessageId"`
			}
		},
		) {
			c.SendBytes(suiteRequest(action, parameters))
			if _, body := c.HTTPResponse(); json.Unmarshal(body, &reply) != nil {
				t.Fatalf("%s: %s", action, body)
			}
			return reply
		}
		ask("CreateQueue", `{"QueueName":"suite"}`)
		sent := ask("SendMessage", `{"QueueUrl":"`+suiteURL+`","MessageBody":"x"}`)
		got := ask(receiveAction, `{"QueueUrl":"`+suiteURL+`"}`)
		if sent.MessageID == "" || len(got.Messages) != 1 || got.Messages[0].MessageID != sent.MessageID {
			t.Errorf("sent %+v, received %+v", sent, got)
		}
	})
}

// ahead is a broker whose time is some seconds ahead.
type ahead struct{ core.Broker }

// Now implements core.Broker.
func (a ahead) Now() core.Instant { return a.Broker.Now().Add(3 * time.Second) }
