package sqs

import (
	"strings"
	"testing"

	"broker/access"
)

func TestWordsOfAttributesMayHaveAnyCase(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.create("q.fifo", "FifoQueue", "True", "ContentBasedDeduplication", "TRUE")
	all := f.attributesOf(q)
	want(t, "fifo", all["FifoQueue"], "true")
	want(t, "deduplication", all["ContentBasedDeduplication"], "true")
	want(t, "the same queue", f.create("q.fifo", "FifoQueue", "true", "ContentBasedDeduplication", "True"), q)
	f.do("SetQueueAttributes", object{"QueueUrl": q, "Attributes": object{"FifoQueue": "true"}}) // no change
}

func TestRedriveCountThatIsTextIsShownAsANumber(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.create("dead")
	text := `{"deadLetterTargetArn": "` + f.arnOf("dead") + `", "maxReceiveCount": "42"}`
	q := f.create("q", "RedrivePolicy", text)
	number := `{"deadLetterTargetArn":"` + f.arnOf("dead") + `","maxReceiveCount":42}`
	want(t, "shown", f.attributesOf(q)["RedrivePolicy"], number)
	want(t, "the same queue by text", f.create("q", "RedrivePolicy", text), q)
	want(t, "the same queue by a number", f.create("q", "RedrivePolicy", number), q)
	f.queues["q"].Attributes["RedrivePolicy"] = text // as an earlier version stored it
	want(t, "the same queue as an earlier version stored it", f.create("q", "RedrivePolicy", number), q)
}

func TestDefaultsOfEncryptionKeysAreNotShown(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.create("q", "KmsMasterKeyId", "key", "KmsDataKeyReusePeriodSeconds", "600")
	want(t, "set", f.attributesOf(q)["KmsDataKeyReusePeriodSeconds"], "600")
	f.do("SetQueueAttributes",
		object{"QueueUrl": q, "Attributes": object{"KmsMasterKeyId": "", "KmsDataKeyReusePeriodSeconds": "300"}})
	want(t, "reuse", f.attributesOf(q)["KmsDataKeyReusePeriodSeconds"], nil)
	want(t, "key", f.attributesOf(q)["KmsMasterKeyId"], nil)
}

// A queue may name itself as its dead-letter queue. Its messages stay.
func TestQueueThatIsItsOwnDeadLetterQueue(t *testing.T) {
	t.Parallel()
	f := setup(t)
	q := f.create("q")
	f.do("SetQueueAttributes", object{"QueueUrl": q, "Attributes": object{
		"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:q","maxReceiveCount":1}`,
	}})
	f.send(q, "m")
	for range 3 {
		want(t, "received", bodies(f.receive(q, "VisibilityTimeout", 0)), "m")
	}
}

func TestChangesOfQueuesAreAudited(t *testing.T) {
	t.Parallel()
	var log []string
	f := setup(t, func(o *Options) {
		o.Audit = func(c access.Change) { log = append(log, strings.TrimSpace(c.Action+" "+c.Target+" "+c.Detail)) }
	})
	q := f.create("q")
	f.do("SetQueueAttributes",
		object{"QueueUrl": q, "Attributes": object{"DelaySeconds": "1", "VisibilityTimeout": "2"}})
	f.do("TagQueue", object{"QueueUrl": q, "Tags": object{"b": "1", "a": "2"}})
	f.do("UntagQueue", object{"QueueUrl": q, "TagKeys": []string{"b"}})
	f.do("AddPermission", object{"QueueUrl": q, "Label": "l", "AWSAccountIds": []string{"1"}, "Actions": []string{"*"}})
	f.do("PurgeQueue", object{"QueueUrl": q})
	f.do("DeleteQueue", object{"QueueUrl": q})
	want(t, "audit log", strings.Join(log, "; "), "queue.create q; queue.change q DelaySeconds, VisibilityTimeout; "+
		"queue.tag q a, b; queue.untag q b; queue.change q Policy; queue.purge q; queue.delete q")
}
