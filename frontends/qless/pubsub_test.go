package qless

import (
	"fmt"
	"strings"
	"testing"

	"broker/frontends/frontendtest"
	"broker/frontends/shared/resp"
)

func TestSubscriptionsAreBoundedInNumberAndBytes(t *testing.T) {
	t.Parallel()
	_, c := setup(t, frontendtest.InMemory)
	const tooMany = "-ERR too many subscriptions"
	if got := c.do("SUBSCRIBE", strings.Repeat("x", resp.MaxSubscriptionBytes), "y"); got != tooMany {
		t.Errorf("long names: %.80s", got)
	}
	if got := c.do("PSUBSCRIBE", strings.Repeat("x", resp.MaxPattern)); !strings.HasSuffix(got, ":1]") {
		t.Errorf("a long pattern: %.80s", got)
	}
	if got := c.do("SUBSCRIBE", strings.Repeat("y", resp.MaxSubscriptionBytes-resp.MaxPattern+1)); got != tooMany {
		t.Errorf("the rest and one more: %.80s", got)
	}
	c.do("PUNSUBSCRIBE")
	if got := c.do("SUBSCRIBE",
		strings.Repeat("y", resp.MaxSubscriptionBytes-resp.MaxPattern+1)); !strings.HasSuffix(got, ":1]") {
		t.Errorf("once the pattern is gone: %.80s", got)
	}
}

func TestSubscribingAndLeavingTakeLinearTime(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, plain, frontendtest.InMemory)
	leaver, stayer := conn{s.Dial("leaver"), t}, conn{s.Dial("stayer"), t}
	names := make([]string, resp.MaxSubscriptions/2)
	for i := range names {
		names[i] = fmt.Sprint("n", i)
	}
	for _, word := range []string{"SUBSCRIBE", "PSUBSCRIBE"} {
		leaver.SendBytes(request(append([]string{word}, names...)...))
		for range names {
			leaver.reply()
		}
	}
	stayer.do("PSUBSCRIBE", "n1*")
	stayer.do("PSUBSCRIBE", "n7")
	leaver.SendBytes(request(append([]string{"UNSUBSCRIBE"}, names[:10]...)...))
	for i := range 10 {
		if got, want := leaver.reply(), fmt.Sprintf("[unsubscribe n%d :%d]", i,
			resp.MaxSubscriptions-i-1); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	leaver.Hangup()
	if got := dial(t, s).do("PUBLISH", "n12", "x"); got != ":1" {
		t.Errorf("publish: %s", got)
	}
	if got := stayer.reply(); got != "[pmessage n1* n12 x]" {
		t.Errorf("got %s", got)
	}
}
