package resp

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The hub and the list of each client stay consistent as clients subscribe and leave.
func TestHubForgetsClientsThatLeft(t *testing.T) {
	t.Parallel()
	var h Hub
	leaver, stayer := &Subscriber{Wake: func() {}}, &Subscriber{Wake: func() {}}
	names := make([]string, 100)
	for i := range names {
		names[i] = "n" + strconv.Itoa(i)
	}
	h.Subscribe(leaver, nil, names)
	h.SubscribePatterns(leaver, nil, names)
	h.SubscribePatterns(stayer, nil, []string{"n1*", "n7"})
	h.UnsubscribePatterns(leaver, nil, names[:10])
	if !slices.IsSorted(h.inOrder) || len(h.inOrder) != len(h.patterns) {
		t.Errorf("%d patterns are in order, of %d", len(h.inOrder), len(h.patterns))
	}
	h.Leave(leaver)
	if !slices.Equal(h.inOrder, []string{"n1*", "n7"}) || len(h.channels) != 0 || leaver.Count() != 0 {
		t.Errorf("left: %q and %d channels", h.inOrder, len(h.channels))
	}
	if n := h.Publish("n12", "x", 0); n != 1 || len(h.Take(stayer)) != 1 || len(h.Take(leaver)) != 0 {
		t.Errorf("%d subscribers", n)
	}
}

func TestSlowSubscriberLosesMessages(t *testing.T) {
	t.Parallel()
	var h Hub
	s := &Subscriber{Wake: func() {}}
	h.Subscribe(s, nil, []string{"c"})
	payload := string(make([]byte, subscriberBytes/2))
	for range 3 {
		h.Publish("c", payload, 0)
	}
	if n := len(h.Take(s)); n != 1 || h.Dropped() != 2 {
		t.Errorf("%d messages, %d dropped", n, h.Dropped())
	}
	h.Publish("c", payload, 0)
	if n := len(h.Take(s)); n != 1 {
		t.Errorf("%d messages after it has read", n)
	}
}

// A pattern of many stars and a long channel would keep all clients waiting for minutes.
func TestLongPatternsAreRefused(t *testing.T) {
	t.Parallel()
	var h Hub
	s := &Subscriber{Wake: func() {}}
	if b := h.SubscribePatterns(s, nil, []string{"x", "*" + strings.Repeat("a", MaxPattern) + "b"}); b[0] != '-' || s.Count() != 0 {
		t.Errorf("%.60q, %d subscriptions", b, s.Count())
	}
	h.SubscribePatterns(s, nil, []string{"*" + strings.Repeat("a", MaxPattern-2) + "b", "*"})
	begin := time.Now() //nolint:forbidigo // the test measures its own time
	if n := h.Publish(strings.Repeat("a", 16<<20), "", 0); n != 0 {
		t.Errorf("%d subscribers", n)
	}
	if n := h.Publish(strings.Repeat("a", MaxPattern), "", 0); n != 1 {
		t.Errorf("%d subscribers of a shorter one", n)
	}
	if took := time.Since(begin); took > 5*time.Second { //nolint:forbidigo // as above
		t.Errorf("publishing took %v", took)
	}
}
