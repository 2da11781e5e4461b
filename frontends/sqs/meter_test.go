package sqs

import (
	"fmt"
	"testing"
)

func TestActionsAreCounted(t *testing.T) {
	t.Parallel()
	f := setup(t)
	want(t, "before", len(f.Actions()), 0)
	f.create("q")
	f.postRaw("SendMessage", `{"QueueUrl":"q","MessageBody":"m"}`)
	f.postRaw("SendMessage", `{"QueueUrl":"none","MessageBody":"m"}`)
	f.postRaw("SendMessage", `{`)
	f.postRaw("Frobnicate", `{}`)
	f.query("/", "Action", "ListQueues")
	want(t, "counts", fmt.Sprint(f.Actions()),
		"[{(none) 0 1 0 0s} {CreateQueue 1 0 0 0s} {ListQueues 1 0 0 0s} {SendMessage 1 2 0 0s}]")
}
