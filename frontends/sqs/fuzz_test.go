package sqs

import (
	"net/http/httptest"
	"reflect"
	"testing"

	"broker/access"
	"broker/core"
)

// FuzzRequest decodes and checks arbitrary requests of both protocols with the largest parameter types: no panic.
func FuzzRequest(f *testing.F) {
	f.Add("/", "AmazonSQS.SendMessageBatch",
		`{"QueueUrl":"q","Entries":[{"Id":"a","MessageBody":"m","MessageAttributes":{"k":{"DataType":"Number","StringValue":"1"}}}]}`)
	f.Add("/000000000000/q", "",
		"Action=SendMessageBatch&SendMessageBatchRequestEntry.1.Id=a&SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.BinaryValue=AA==")
	f.Add("/?Action=ReceiveMessage", "",
		"SendMessageBatchRequestEntry.1.DelaySeconds=x&SendMessageBatchRequestEntry.9999999999999999999.Id=b")
	f.Add("/", "AmazonSQS.X", `{"Entries":[null,{"MessageAttributes":{"":null}}]}`)
	front := New(access.Unrestricted(nil, core.SQS), Options{Account: "000000000000"})
	f.Fuzz(func(t *testing.T, path, target, body string) {
		r := httptest.NewRequest("POST", "/", nil)
		r.URL.Path = path
		if target != "" {
			r.Header.Set("X-Amz-Target", target)
		}
		w, err := readRequest(r, []byte(body))
		if err != nil {
			return
		}
		in := &sendBatchInput{}
		if w.decode(in) != nil {
			return
		}
		q := &request{front: front, wire: w, from: caller{}}
		for _, fifo := range []bool{false, true} {
			for i := range in.Entries {
				if m, err := q.check(&queue{FIFO: fifo}, &in.Entries[i].messageInput); err == nil &&
					(m.body == "" || !validContents(m.body) || m.size() < len(m.body)) {
					t.Errorf("accepted %q", m.body)
				}
			}
		}
	})
}

func FuzzReceiptHandle(f *testing.F) {
	f.Add(receiptHandle{seq: 1, leasedAt: 2}.text("q"), "q")
	f.Add("AQ==", "q")
	f.Fuzz(func(t *testing.T, text, queue string) {
		h, err := parseHandle(text, queue)
		if err != nil {
			return
		}
		again, err := parseHandle(h.text(queue), queue)
		if err != nil || !reflect.DeepEqual(h, again) {
			t.Errorf("%q is %+v, then %+v, %v", text, h, again, err)
		}
		if _, err := parseHandle(h.text(queue), queue+"x"); err == nil {
			t.Errorf("%q is a handle of another queue too", text)
		}
	})
}

// FuzzSignature reads arbitrary signatures: no panic.
func FuzzSignature(f *testing.F) {
	f.Add("AWS4-HMAC-SHA256 Credential=a/20260102/r/sqs/aws4_request, SignedHeaders=host, Signature=x",
		"20260102T030405Z", "a=b")
	f.Add("", "",
		"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a/b/c/d/e&X-Amz-Expires=1&X-Amz-Date=x&X-Amz-SignedHeaders=host&X-Amz-Signature=y")
	f.Fuzz(func(t *testing.T, authorization, date, query string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.RawQuery = query
		r.Header.Set("Authorization", authorization)
		r.Header.Set("X-Amz-Date", date)
		if s, err := readSignature(r); err == nil && s != nil &&
			s.checkScope(r, exampleTime) == nil && s.check(r, nil, "secret") == nil {
			t.Errorf("%q is the signature of a secret that it does not know", authorization)
		}
	})
}
