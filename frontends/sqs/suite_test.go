package sqs

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

// SQS passes the test suite of the front-ends.
func TestSQSBehavesAsAFrontend(t *testing.T) {
	t.Parallel()
	frontendtest.Run(t, frontendtest.WithinBubble(false, suiteDialect))
}

const suiteURL = "http://localhost/000000000000/suite"

// suiteRequest is a request in AWS JSON.
func suiteRequest(action, parameters string) []byte {
	return frontendtest.HTTPRequest("POST", "/", parameters,
		"Content-Type: application/x-amz-json-1.0\r\n", "X-Amz-Target: AmazonSQS."+action+"\r\n")
}

func suiteDialect(t *testing.T) frontendtest.Dialect {
	t.Helper()
	want200 := func(c *frontendtest.Client) (reply object) {
		status, body := c.HTTPResponse()
		if err := json.Unmarshal(body, &reply); err != nil && len(body) > 0 || status != http.StatusOK {
			t.Fatalf("%d %s: %v", status, body, err)
		}
		return reply
	}
	return frontendtest.Dialect{
		New:    func(b core.Broker) frontends.Frontend { return suiteFront(t, b, nil) },
		Follow: func(b core.Broker, l frontends.Leader) frontends.Frontend { return suiteFront(t, b, l) },
		Same:   func(output []byte) []byte { return randomIDs.ReplaceAll(output, nil) },
		Greet: func(c *frontendtest.Client) {
			c.SendBytes(suiteRequest("CreateQueue", `{"QueueName":"suite"}`))
			want200(c)
		},
		SubmitRequest: func(_ int, queue, body string) []byte {
			parameters, err := json.Marshal(object{
				"QueueUrl": strings.Replace(suiteURL, "suite", queue, 1), "MessageBody": body,
			})
			if err != nil {
				t.Fatal(err)
			}
			return suiteRequest("SendMessage", string(parameters))
		},
		SubmitReply: func(c *frontendtest.Client, _ int) { want200(c) },
		Lease: func(c *frontendtest.Client, queue string) (frontendtest.Leased, bool) {
			c.SendBytes(suiteRequest("ReceiveMessage", `{"QueueUrl":"`+suiteURL+`"}`))
			messages, _ := want200(c)["Messages"].([]any)
			if len(messages) == 0 {
				return frontendtest.Leased{}, false
			}
			m := messages[0].(object)
			return frontendtest.Leased{ID: m["ReceiptHandle"].(string), Queue: queue, Body: m["Body"].(string)}, true
		},
		Complete: func(c *frontendtest.Client, job frontendtest.Leased) {
			c.SendBytes(suiteRequest("DeleteMessage", `{"QueueUrl":"`+suiteURL+`","ReceiptHandle":"`+job.ID+`"}`))
			want200(c)
		},
		LeaseFor: 30 * time.Second,
		Ping:     suiteRequest("Nothing", "{}"),
		Pong: func(c *frontendtest.Client) {
			if status, body := c.HTTPResponse(); status != http.StatusBadRequest {
				t.Fatalf("ping: %d %s", status, body)
			}
		},
		Commands:  slices.Collect(maps.Keys(commands)),
		Exchanges: suiteExchanges(),
		Garbage: [][]byte{
			[]byte("GET\r\n\r\n"), suiteRequest("SendMessage", "{"), suiteRequest("SendMessage", `{"QueueUrl":7}`),
			frontendtest.HTTPRequest("POST", "/", "Action=SendMessage&QueueUrl=%"),
		},
		Oversize: []byte("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"),
	}
}

// sharedHTTP is the HTTP server of a front-end with a part that clients of all nodes share.
type sharedHTTP struct {
	frontends.Frontend
	frontends.Shared
}

func suiteFront(t *testing.T, b core.Broker, leader frontends.Leader) frontends.Frontend {
	t.Helper()
	f := New(access.NewGuard(b, &access.Control{}, 0, ""), Options{
		Options: frontends.Options{Leader: leader},
		Account: "000000000000", Region: "us-east-1", URL: "http://localhost",
	})
	if err := f.Start(); err != nil {
		t.Fatal(err)
	}
	refused := suiteRequest("CreateQueue", `{"QueueName":"refused"}`)
	return sharedHTTP{frontendtest.NewHTTP(t, f.Server(), refused, f.Close), f}
}

// randomIDs are the ids of requests and messages, and the digests made of them.
var randomIDs = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

var handleInReply = regexp.MustCompile(`"ReceiptHandle":"([^"]+)"`)

// suiteExchanges are those of the shared suite.
func suiteExchanges() (all []frontendtest.Exchange) {
	const url = `"QueueUrl":"` + suiteURL + `"`
	for _, e := range [][2]string{
		{"CreateQueue", `{"QueueName":"suite"}`},
		{"CreateQueue", `{"QueueName":"other"}`},
		{"ListQueues", `{}`},
		{"GetQueueUrl", `{"QueueName":"suite"}`},
		{"GetQueueUrl", `{"QueueName":"none"}`},
		{"DeleteQueue", `{` + url + `}`},
		{"PurgeQueue", `{` + url + `}`},
		{"GetQueueAttributes", `{` + url + `,"AttributeNames":["All"]}`},
		{"SetQueueAttributes", `{` + url + `,"Attributes":{"VisibilityTimeout":"7"}}`},
		{"TagQueue", `{` + url + `,"Tags":{"a":"b"}}`},
		{"UntagQueue", `{` + url + `,"TagKeys":["a"]}`},
		{"ListQueueTags", `{` + url + `}`},
		{"AddPermission", `{` + url + `,"Label":"l","AWSAccountIds":["1"],"Actions":["*"]}`},
		{"RemovePermission", `{` + url + `,"Label":"l"}`},
		{"SendMessage", `{` + url + `,"MessageBody":"x"}`},
		{"SendMessage", `{"QueueUrl":"http://localhost/000000000000/none","MessageBody":"x"}`},
		{"SendMessageBatch", `{` + url + `,"Entries":[{"Id":"a","MessageBody":"x"}]}`},
		{"ReceiveMessage", `{` + url + `}`},
		{"DeleteMessage", `{` + url + `,"ReceiptHandle":"HANDLE"}`},
		{"DeleteMessageBatch", `{` + url + `,"Entries":[{"Id":"a","ReceiptHandle":"HANDLE"}]}`},
		{"ChangeMessageVisibility", `{` + url + `,"ReceiptHandle":"HANDLE","VisibilityTimeout":5}`},
		{"ChangeMessageVisibility", `{` + url + `,"ReceiptHandle":"HANDLE","VisibilityTimeout":0}`},
		{
			"ChangeMessageVisibilityBatch",
			`{` + url + `,"Entries":[{"Id":"a","ReceiptHandle":"HANDLE","VisibilityTimeout":5}]}`,
		},
		{"ListDeadLetterSourceQueues", `{` + url + `}`},
		{"StartMessageMoveTask", `{"SourceArn":"arn:aws:sqs:us-east-1:000000000000:suite"}`},
		{"ListMessageMoveTasks", `{"SourceArn":"arn:aws:sqs:us-east-1:000000000000:suite"}`},
		{"CancelMessageMoveTask", `{"TaskHandle":"none"}`},
	} {
		action, parameters := e[0], e[1]
		exchange := frontendtest.Exchange{Command: action, Send: string(suiteRequest(action, parameters))}
		if strings.Contains(parameters, "HANDLE") {
			exchange.Before = string(suiteRequest("ReceiveMessage", `{`+url+`}`))
			exchange.Fill = func(before []byte) string {
				handle := string(handleInReply.FindSubmatch(before)[1])
				return string(suiteRequest(action, strings.ReplaceAll(parameters, "HANDLE", handle)))
			}
		}
		all = append(all, exchange)
	}
	return all
}
