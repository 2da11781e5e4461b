package sqs

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// queryJSON sends a Query request that accepts JSON, and returns the reply.
func (f *fixture) queryJSON(ctx context.Context, path string, pairs ...string) (int, http.Header, object) {
	f.t.Helper()
	form := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	r := httptest.NewRequest(http.MethodGet, "http://queues.test"+path+"?"+form.Encode(), nil).WithContext(ctx)
	r.Header.Set("Accept", "application/json")
	return f.exchange(r)
}

// at walks into a value of JSON by names of members and indexes.
func at(value any, path ...any) any {
	for _, step := range path {
		switch key := step.(type) {
		case string:
			members, _ := value.(object)
			value = members[key]
		case int:
			list, _ := value.([]any)
			if key >= len(list) {
				return nil
			}
			value = list[key]
		}
	}
	return value
}

func TestQueryRepliesInJSONToClientsThatAcceptIt(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.create("q", "DelaySeconds", "0")
	status, header, out := f.queryJSON(t.Context(), "/000000000000/q", "Action", "SendMessage", "MessageBody", "m",
		"MessageAttribute.1.Name", "a", "MessageAttribute.1.Value.DataType", "String",
		"MessageAttribute.1.Value.StringValue", "v")
	want(t, "status", status, http.StatusOK)
	want(t, "content type", header.Get("Content-Type"), "application/json")
	result, _ := at(out, "SendMessageResponse", "SendMessageResult").(object)
	want(t, "digest", result["MD5OfMessageBody"], "6f8f57715090da2632453988d9a1501b")
	if number, has := result["SequenceNumber"]; !has || number != nil {
		t.Errorf("a member without a value is %v, want null", result)
	}
	id := at(out, "SendMessageResponse", "ResponseMetadata", "RequestId")
	want(t, "request id", id, header.Get("X-Amzn-Requestid"))

	_, _, out = f.queryJSON(t.Context(), "/000000000000/q", "Action", "ReceiveMessage", "VisibilityTimeout", "0",
		"AttributeName.1", "ApproximateReceiveCount", "MessageAttributeName.1", "All")
	first := at(out, "ReceiveMessageResponse", "ReceiveMessageResult", "messages", 0)
	want(t, "body", at(first, "Body"), "m")
	want(t, "attribute", at(first, "Attributes", 0, "Name"), "ApproximateReceiveCount")
	want(t, "its value", at(first, "Attributes", 0, "Value"), "1")
	want(t, "message attribute", at(first, "MessageAttributes", 0, "Name"), "a")
	want(t, "its value", at(first, "MessageAttributes", 0, "Value", "StringValue"), "v")

	_, _, out = f.queryJSON(t.Context(), "/", "Action", "ListQueues")
	want(t, "queues", at(out, "ListQueuesResponse", "ListQueuesResult", "queueUrls", 0), q)
	_, _, out = f.queryJSON(t.Context(), "/000000000000/q",
		"Action", "GetQueueAttributes", "AttributeName.1", "QueueArn")
	arn := at(out, "GetQueueAttributesResponse", "GetQueueAttributesResult", "Attributes", 0, "Value")
	want(t, "queue attribute", arn, f.arnOf("q"))
	_, _, out = f.queryJSON(t.Context(), "/000000000000/q", "Action", "PurgeQueue")
	if _, has := at(out, "PurgeQueueResponse").(object)["PurgeQueueResult"]; has {
		t.Errorf("an action without a result: %v", out)
	}
}

func TestErrorsOfQueryInJSON(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("q")
	status, _, out := f.queryJSON(t.Context(), "/000000000000/q", "Action", "ListQueues")
	want(t, "status", status, http.StatusBadRequest)
	want(t, "code", at(out, "Error", "Code"), "InvalidAction")
	want(t, "message", at(out, "Error", "Message"), "The action ListQueues is not valid for this endpoint.")
	want(t, "fault", at(out, "Error", "Type"), "Sender")
	r := httptest.NewRequest(http.MethodGet, "http://queues.test/000000000000/q", nil)
	r.Header.Set("Accept", "application/json")
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	want(t, "no action", w.Body.String(), "<UnknownOperationException/>")
}
