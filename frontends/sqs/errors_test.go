package sqs

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"broker/core"
)

func TestEveryKindOfErrorHasARow(t *testing.T) {
	t.Parallel()
	for _, kind := range core.Errors {
		if e := errorOf(kind); e.kind == internalError {
			t.Errorf("%v has no row", kind)
		}
	}
	if e := errorOf(errors.New("secret detail")); e.kind != internalError || strings.Contains(e.text, "secret") {
		t.Errorf("an unknown error is shown as %v", e)
	}
}

// Each row of the table of errors is a request with its error in JSON and in Query.
func TestBadInput(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20+1)
	entry := func(id string) object { return object{"Id": id, "MessageBody": "m"} }
	text := func(kind, value string) object { return object{"a": object{"DataType": kind, "StringValue": value}} }
	many := object{}
	for _, c := range "abcdefghijk" {
		many[string(c)] = object{"DataType": "String", "StringValue": "v"}
	}
	eleven := []object{}
	for _, c := range "abcdefghijk" {
		eleven = append(eleven, entry(string(c)))
	}
	arn := func(name string) string { return "arn:aws:sqs:us-east-1:000000000000:" + name }
	taskOf := func(name string) string {
		return base64.StdEncoding.EncodeToString([]byte(`{"taskId":"t","sourceArn":"` + arn(name) + `"}`))
	}
	redrivePolicyOf := func(target, count string) object {
		return object{"RedrivePolicy": `{"deadLetterTargetArn":"` + arn(target) + `","maxReceiveCount":` + count + `}`}
	}
	for _, c := range []struct {
		name, action string
		in           object
		kind         *errorKind
	}{
		{"unknown queue", "SendMessage", object{"QueueUrl": "none", "MessageBody": "m"}, queueDoesNotExist},
		{"unknown queue by name", "GetQueueUrl", object{"QueueName": "none"}, queueDoesNotExist},
		{
			"other attributes", "CreateQueue",
			object{"QueueName": "q", "Attributes": object{"DelaySeconds": "9"}},
			queueNameExists,
		},
		{"bad name", "CreateQueue", object{"QueueName": "a b"}, invalidParameter},
		{"long name", "CreateQueue", object{"QueueName": strings.Repeat("a", 81)}, invalidParameter},
		{
			"fifo without its suffix", "CreateQueue",
			object{"QueueName": "x", "Attributes": object{"FifoQueue": "true"}},
			invalidParameter,
		},
		{"suffix without fifo", "CreateQueue", object{"QueueName": "x.fifo"}, invalidParameter},
		{
			"fifo false", "CreateQueue",
			object{"QueueName": "x", "Attributes": object{"FifoQueue": "false"}},
			invalidAttributeName,
		},
		{
			"unknown attribute", "CreateQueue",
			object{"QueueName": "x", "Attributes": object{"Foo": "1"}},
			invalidAttributeName,
		},
		{
			"read-only attribute", "SetQueueAttributes",
			object{"QueueUrl": "q", "Attributes": object{"QueueArn": "1"}},
			invalidAttributeName,
		},
		{
			"attribute of fifo queues", "SetQueueAttributes",
			object{"QueueUrl": "q", "Attributes": object{"ContentBasedDeduplication": "true"}},
			invalidAttributeName,
		},
		{
			"fifo changed", "SetQueueAttributes",
			object{"QueueUrl": "f.fifo", "Attributes": object{"FifoQueue": "false"}},
			invalidAttribute,
		},
		{
			"scope of a standard queue", "CreateQueue",
			object{"QueueName": "x", "Attributes": object{"DeduplicationScope": "queue"}},
			invalidAttributeName,
		},
		{
			"out of range", "SetQueueAttributes",
			object{"QueueUrl": "q", "Attributes": object{"VisibilityTimeout": "43201"}},
			invalidAttribute,
		},
		{
			"no number", "SetQueueAttributes",
			object{"QueueUrl": "q", "Attributes": object{"DelaySeconds": "x"}},
			invalidAttribute,
		},
		{
			"unknown attribute asked for", "GetQueueAttributes",
			object{"QueueUrl": "q", "AttributeNames": []string{"Foo"}},
			invalidAttributeName,
		},
		{
			"redrive to nowhere", "SetQueueAttributes",
			object{"QueueUrl": "q", "Attributes": redrivePolicyOf("none", "1")},
			invalidParameter,
		},
		{
			"redrive to another type", "SetQueueAttributes",
			object{"QueueUrl": "q", "Attributes": redrivePolicyOf("f.fifo", "1")},
			invalidParameter,
		},
		{
			"redrive not allowed", "SetQueueAttributes",
			object{"QueueUrl": "q", "Attributes": redrivePolicyOf("closed", "1")},
			invalidParameter,
		},
		{"redrive count", "SetQueueAttributes", object{
			"QueueUrl": "q", "Attributes": redrivePolicyOf("closed", "1001"),
		}, invalidParameter},
		{"redrive count is a word", "SetQueueAttributes", object{
			"QueueUrl": "q", "Attributes": redrivePolicyOf("dead", `"x"`),
		}, invalidParameter},
		{"redrive without a count", "SetQueueAttributes", object{"QueueUrl": "q", "Attributes": object{
			"RedrivePolicy": `{"deadLetterTargetArn":"` + arn("dead") + `"}`,
		}}, invalidParameter},
		{"redrive without a queue", "SetQueueAttributes", object{"QueueUrl": "q", "Attributes": object{
			"RedrivePolicy": `{"maxReceiveCount":"42"}`,
		}}, invalidParameter},
		{"redrive is no JSON", "SetQueueAttributes", object{
			"QueueUrl": "q", "Attributes": object{"RedrivePolicy": "x"},
		}, invalidParameter},
		{"receive none", "ReceiveMessage", object{"QueueUrl": "q", "MaxNumberOfMessages": 0}, invalidParameter},
		{"receive eleven", "ReceiveMessage", object{"QueueUrl": "q", "MaxNumberOfMessages": 11}, invalidParameter},
		{"wait too long", "ReceiveMessage", object{"QueueUrl": "q", "WaitTimeSeconds": 21}, invalidParameter},
		{"invisible too long", "ReceiveMessage", object{"QueueUrl": "q", "VisibilityTimeout": 43201}, invalidParameter},
		{"delay", "SendMessage", object{"QueueUrl": "q", "MessageBody": "m", "DelaySeconds": 901}, invalidParameter},
		{"too long", "SendMessage", object{"QueueUrl": "q", "MessageBody": long}, invalidParameter},
		{
			"longer than the queue allows", "SendMessage",
			object{"QueueUrl": "small", "MessageBody": strings.Repeat("x", 1025)},
			invalidParameter,
		},
		{
			"eleven attributes", "SendMessage",
			object{"QueueUrl": "q", "MessageBody": "m", "MessageAttributes": many},
			invalidParameter,
		},
		{"reserved name", "SendMessage", object{
			"QueueUrl": "q", "MessageBody": "m",
			"MessageAttributes": object{"AWS.x": object{"DataType": "String", "StringValue": "v"}},
		}, invalidParameter},
		{"dot at the end", "SendMessage", object{
			"QueueUrl": "q", "MessageBody": "m",
			"MessageAttributes": object{"x.": object{"DataType": "String", "StringValue": "v"}},
		}, invalidParameter},
		{
			"unknown type", "SendMessage",
			object{"QueueUrl": "q", "MessageBody": "m", "MessageAttributes": text("Text", "v")},
			invalidParameter,
		},
		{
			"empty value", "SendMessage",
			object{"QueueUrl": "q", "MessageBody": "m", "MessageAttributes": text("String", "")},
			invalidParameter,
		},
		{
			"not a number", "SendMessage",
			object{"QueueUrl": "q", "MessageBody": "m", "MessageAttributes": text("Number", "1x")},
			invalidParameter,
		},
		{"no body", "SendMessage", object{"QueueUrl": "q"}, missingParameter},
		{"empty body", "SendMessage", object{"QueueUrl": "q", "MessageBody": ""}, missingParameter},
		{"no queue", "SendMessage", object{"MessageBody": "m"}, missingParameter},
		{
			"no group", "SendMessage",
			object{"QueueUrl": "f.fifo", "MessageBody": "m", "MessageDeduplicationId": "d"},
			missingParameter,
		},
		{
			"no deduplication id", "SendMessage",
			object{"QueueUrl": "f.fifo", "MessageBody": "m", "MessageGroupId": "g"},
			invalidParameter,
		},
		{"fifo and delay", "SendMessage", object{
			"QueueUrl": "f.fifo", "MessageBody": "m", "MessageGroupId": "g", "MessageDeduplicationId": "d",
			"DelaySeconds": 1,
		}, invalidParameter},
		{"group with a space", "SendMessage", object{
			"QueueUrl": "f.fifo", "MessageBody": "m", "MessageGroupId": "a b", "MessageDeduplicationId": "d",
		}, invalidParameter},
		{"control character", "SendMessage", object{"QueueUrl": "q", "MessageBody": "a\x01"}, invalidContents},
		{"no handle", "DeleteMessage", object{"QueueUrl": "q", "ReceiptHandle": "x"}, invalidHandle},
		{"handle missing", "DeleteMessage", object{"QueueUrl": "q"}, missingParameter},
		{
			"visibility missing", "ChangeMessageVisibility",
			object{"QueueUrl": "q", "ReceiptHandle": "x"},
			missingParameter,
		},
		{
			"control character in an attribute", "SendMessage",
			object{"QueueUrl": "q", "MessageBody": "m", "MessageAttributes": text("String", "\x01")},
			invalidParameter,
		},
		{"batch without a group", "SendMessageBatch", object{
			"QueueUrl": "f.fifo", "Entries": []object{{"Id": "a", "MessageBody": "m", "MessageDeduplicationId": "d"}},
		}, invalidParameter},
		{"batch without a deduplication id", "SendMessageBatch", object{
			"QueueUrl": "f.fifo", "Entries": []object{{"Id": "a", "MessageBody": "m", "MessageGroupId": "g"}},
		}, invalidParameter},
		{"empty batch", "SendMessageBatch", object{"QueueUrl": "q", "Entries": []object{}}, emptyBatch},
		{"eleven entries", "SendMessageBatch", object{"QueueUrl": "q", "Entries": eleven}, tooManyEntries},
		{
			"same ids", "SendMessageBatch",
			object{"QueueUrl": "q", "Entries": []object{entry("a"), entry("a")}},
			idsNotDistinct,
		},
		{"bad id", "SendMessageBatch", object{"QueueUrl": "q", "Entries": []object{entry("a b")}}, invalidEntryID},
		{"batch too long", "SendMessageBatch", object{"QueueUrl": "q", "Entries": []object{
			{"Id": "a", "MessageBody": long[:1<<19+1]}, {"Id": "b", "MessageBody": long[:1<<19]},
		}}, batchTooLong},
		{
			"label missing", "AddPermission",
			object{"QueueUrl": "q", "AWSAccountIds": []string{"1"}, "Actions": []string{"*"}},
			missingParameter,
		},
		{"unknown action of a label", "AddPermission", object{
			"QueueUrl": "q", "Label": "l", "AWSAccountIds": []string{"1"}, "Actions": []string{"Fly"},
		}, invalidParameter},
		{"policy that denies", "SetQueueAttributes", object{"QueueUrl": "q", "Attributes": object{
			"Policy": `{"Statement":[{"Effect":"Allow"},{"Effect":"Deny","Action":"SQS:*"}]}`,
		}}, unsupported},
		{"new queue with a policy that denies", "CreateQueue", object{
			"QueueName": "x", "Attributes": object{"Policy": `{"Statement":{"Effect":"Deny","Principal":"*"}}`},
		}, unsupported},
		{"label unknown", "RemovePermission", object{"QueueUrl": "q", "Label": "x"}, invalidParameter},
		{"move from nowhere", "StartMessageMoveTask", object{"SourceArn": arn("none")}, resourceNotFound},
		{
			"move to nowhere", "StartMessageMoveTask",
			object{"SourceArn": arn("dead"), "DestinationArn": arn("none")},
			resourceNotFound,
		},
		{"no dead-letter queue", "StartMessageMoveTask", object{"SourceArn": arn("q")}, invalidParameter},
		{"bad task handle", "CancelMessageMoveTask", object{"TaskHandle": "!"}, invalidParameter},
		{"task handle of something else", "CancelMessageMoveTask", object{"TaskHandle": "cTp4"}, invalidParameter},
		{"unknown task", "CancelMessageMoveTask", object{"TaskHandle": taskOf("q")}, resourceNotFound},
		{"task of an unknown queue", "CancelMessageMoveTask", object{"TaskHandle": taskOf("none")}, resourceNotFound},
		{"unknown action", "Frobnicate", object{}, unknownOperation},
		{"text for a number", "ReceiveMessage", object{"QueueUrl": "q", "MaxNumberOfMessages": "x"}, serialization},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			f.create("q")
			f.create("f.fifo", "FifoQueue", "true")
			f.create("small", "MaximumMessageSize", "1024")
			f.create("closed", "RedriveAllowPolicy", `{"redrivePermission":"denyAll"}`)
			f.create("dead")
			f.create("source", "RedrivePolicy", redrivePolicyOf("dead", `"3"`)["RedrivePolicy"].(string))
			status, header, out := f.post(context.Background(), c.action, c.in)
			want(t, "status", status, c.kind.status)
			want(t, "type", out["__type"], "com.amazonaws.sqs#"+c.kind.name)
			want(t, "header", header.Get("X-Amzn-Query-Error"), c.kind.code+";Sender")
			want(t, "header of the type", header.Get("X-Amzn-Errortype"), "com.amazonaws.sqs#"+c.kind.name)
			if text, _ := out["message"].(string); text == "" {
				t.Error("no message")
			}
		})
	}
}

func TestEmptyBatchNamesItsEntryType(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("q")
	for _, action := range []string{"SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch"} {
		_, _, out := f.post(t.Context(), action, object{"QueueUrl": "q", "Entries": []object{}})
		want(t, action, out["message"], "There should be at least one "+action+"RequestEntry in the request.")
	}
}

// AWS accepts letters of Latin languages in names of attributes, which its documentation does not say, and refuses
// other characters.
func TestNamesOfMessageAttributesOutsideASCII(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("q")
	for name, status := range map[string]int{
		"attr.1øßä": 200, "öther_encodings": 200, "a§": 400, "a×": 400, "a÷": 400, "ключ": 400,
	} {
		got, _, _ := f.post(t.Context(), "SendMessage", object{
			"QueueUrl": "q", "MessageBody": "m",
			"MessageAttributes": object{name: object{"DataType": "String", "StringValue": "v"}},
		})
		want(t, name, got, status)
	}
}

// The error for a wrong JSON type names the member, but no Go type.
func TestMalformedJSON(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("q")
	for _, c := range []struct {
		name, body string
		kind       *errorKind
		says       string
	}{
		{"no JSON", `{`, serialization, "malformed"},
		{"not an object", `[]`, serialization, "The value of request is a JSON array"},
		{
			"a number for text", `{"QueueUrl":"q","MessageBody":5}`, serialization,
			"The value of MessageBody is a JSON number",
		},
		{
			"text for a number", `{"QueueUrl":"q","MessageBody":"m","DelaySeconds":"1"}`, serialization,
			"The value of DelaySeconds is a JSON string",
		},
		{
			"a fraction", `{"QueueUrl":"q","MessageBody":"m","DelaySeconds":1.5}`, serialization,
			"The value of DelaySeconds is a JSON number 1.5",
		},
		{
			"not base64",
			`{"QueueUrl":"q","MessageBody":"m","MessageAttributes":{"a":{"DataType":"Binary","BinaryValue":"***"}}}`,
			serialization, "base64",
		},
		{"not UTF-8", "{\"QueueUrl\":\"q\",\"MessageBody\":\"\xff\"}", serialization, "UTF-8"},
		{"half of a pair", `{"QueueUrl":"q","MessageBody":"\ud83d"}`, invalidContents, "surrogate"},
		{"halves in the wrong order", `{"QueueUrl":"q","MessageBody":"\uDE00\uD83D"}`, invalidContents, "surrogate"},
		{"half of a pair before text", `{"QueueUrl":"q","MessageBody":"\ud83dude00"}`, invalidContents, "surrogate"},
		{
			"half of a pair in an attribute",
			`{"QueueUrl":"q","MessageBody":"m","MessageAttributes":{"a":{"DataType":"String","StringValue":"\ud83d"}}}`,
			invalidContents, "surrogate",
		},
	} {
		status, header, out := f.postRaw("SendMessage", c.body)
		want(t, c.name+": status", status, c.kind.status)
		want(t, c.name+": type", out["__type"], "com.amazonaws.sqs#"+c.kind.name)
		want(t, c.name+": header", header.Get("X-Amzn-Query-Error"), c.kind.code+";Sender")
		if text, _ := out["message"].(string); !strings.Contains(text, c.says) || strings.Contains(text, "Go ") {
			t.Errorf("%s: %q", c.name, text)
		}
	}
	status, _, out := f.postRaw("SendMessage", `{"QueueUrl":"q","MessageBody":"\ud83d\uDE00\\ud83d\u00e9"}`)
	want(t, "pairs: status", status, 200)
	want(t, "pairs: digest", out["MD5OfMessageBody"], fmt.Sprintf("%x", md5.Sum([]byte("\U0001F600\\ud83dé"))))
}

func TestErrorsOfQuery(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("q")
	for _, c := range []struct {
		name, path string
		pairs      []string
		status     int
		want       string
	}{
		{"no action", "/", nil, 404, "<UnknownOperationException/>"},
		{
			"unknown action", "/",
			[]string{"Action", "X"},
			400,
			"<Code>InvalidAction</Code><Message>The action X is not valid for this endpoint.</Message>",
		},
		{
			"an action without a queue on a queue's path", "/000000000000/q",
			[]string{"Action", "ListQueues"},
			400,
			"<Code>InvalidAction</Code>",
		},
		{
			"unknown queue", "/",
			[]string{"Action", "PurgeQueue", "QueueUrl", "none"},
			400,
			"<Code>AWS.SimpleQueueService.NonExistentQueue</Code><Message>The specified queue does not exist for this wsdl version.</Message>",
		},
		{"a number that is none", "/", []string{
			"Action", "ReceiveMessage", "QueueUrl", "q", "MaxNumberOfMessages", "x",
		}, 400, "<Code>InvalidParameterValue</Code>"},
		{"no messages", "/000000000000/q", []string{"Action", "ReceiveMessage"}, 200, "<ReceiveMessageResult/>"},
		{
			"missing parameter", "/",
			[]string{"Action", "CreateQueue"},
			400,
			"<Type>Sender</Type><Code>MissingParameter</Code>",
		},
	} {
		status, header, body := f.query(c.path, c.pairs...)
		if status != c.status || !strings.Contains(body, c.want) ||
			(header.Get("X-Amzn-Query-Error") == "") != (status == 200) {
			t.Errorf("%s: %d %s", c.name, status, body)
		}
	}
}
