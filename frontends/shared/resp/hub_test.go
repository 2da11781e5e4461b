package resp

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"broker/access"
)

func anyChannel(string) bool { return true }

// The hub and the list of each client stay consistent as clients subscribe and leave.
func TestHubForgetsClientsThatLeft(t *testing.T) {
	t.Parallel()
	var h Hub
	leaver := &Subscriber{MayHear: anyChannel, Wake: func() {}}
	stayer := &Subscriber{MayHear: anyChannel, Wake: func() {}}
	names := make([]string, 100)
	for i := range names {
		names[i] = "n" + strconv.Itoa(i)
	}
	h.Subscribe(leaver, nil, names)
	h.SubscribePatterns(leaver, nil, names)
	h.SubscribePatterns(stayer, nil, []string{"n1*", "n7"})
	h.UnsubscribePatterns(leaver, nil, names[:10])
	h.Leave(leaver)
	if len(h.patterns.all) != 2 || len(h.patterns.prefixes) != 2 || len(h.channels) != 0 || leaver.Count() != 0 {
		t.Errorf("left: %d patterns and %d channels", len(h.patterns.all), len(h.channels))
	}
	if n := h.Publish("n12", "x", nil); n != 1 || len(h.Take(stayer)) != 1 || len(h.Take(leaver)) != 0 {
		t.Errorf("%d subscribers", n)
	}
}

func TestSlowSubscriberLosesMessages(t *testing.T) {
	t.Parallel()
	var h Hub
	s := &Subscriber{MayHear: anyChannel, Wake: func() {}}
	h.Subscribe(s, nil, []string{"c"})
	payload := string(make([]byte, subscriberBytes/2))
	for range 3 {
		h.Publish("c", payload, nil)
	}
	if n := len(h.Take(s)); n != 1 || h.Dropped() != 2 {
		t.Errorf("%d messages, %d dropped", n, h.Dropped())
	}
	h.Publish("c", payload, nil)
	if n := len(h.Take(s)); n != 1 {
		t.Errorf("%d messages after it has read", n)
	}
}

// A pattern of many stars and a long channel would keep all clients waiting for minutes.
func TestLongPatternsAreRefused(t *testing.T) {
	t.Parallel()
	var h Hub
	s := &Subscriber{MayHear: anyChannel, Wake: func() {}}
	if b := h.SubscribePatterns(s, nil, []string{"x", "*" + strings.Repeat("a", MaxPattern) + "b"}); b[0] != '-' ||
		s.Count() != 0 {
		t.Errorf("%.60q, %d subscriptions", b, s.Count())
	}
	h.SubscribePatterns(s, nil, []string{"*" + strings.Repeat("a", MaxPattern-2) + "b", "*"})
	begin := time.Now() //nolint:forbidigo // the test measures its own time
	if n := h.Publish(strings.Repeat("a", 16<<20), "", nil); n != 0 {
		t.Errorf("%d subscribers", n)
	}
	if n := h.Publish(strings.Repeat("a", MaxPattern), "", nil); n != 1 {
		t.Errorf("%d subscribers of a shorter one", n)
	}
	if took := time.Since(begin); took > time.Minute { //nolint:forbidigo // as above
		t.Errorf("publishing took %v", took)
	}
}

// TestPatternsOfAllClientsHaveOneBudget subscribes to as many expensive patterns as the hub allows, and counts the
// steps that a publication takes.
func TestPatternsOfAllClientsHaveOneBudget(t *testing.T) {
	t.Parallel()
	var h Hub
	steps := func() (n int) {
		for _, p := range h.patterns.wild {
			n += stepsOf(p.text)
		}
		return n
	}
	var all []*Subscriber
	for i := range 8 {
		s := &Subscriber{MayHear: anyChannel, Wake: func() {}, Holder: access.NamedHolder(strconv.Itoa(i), false)}
		all = append(all, s)
		refused := false
		for n := 0; !refused && n < 2_000; n++ {
			text := "*" + strconv.Itoa(i) + strings.Repeat("a", 500) + strconv.Itoa(n)
			b := h.SubscribePatterns(s, nil, []string{text})
			refused = strings.Contains(string(b), noWildSteps)
		}
		if !refused {
			t.Fatalf("client %d has %d patterns", i, s.Count())
		}
		if i == 0 && s.Count() < 20 {
			t.Errorf("the first client gets %d patterns", s.Count())
		}
		if n := steps(); n > wildSteps {
			t.Fatalf("a publication takes %d steps for each byte, the budget is %d", n, wildSteps)
		}
	}
	if all[1].Count() == 0 {
		t.Error("the first client has used the patterns of the second one")
	}
	names := make([]string, MaxSubscriptions-all[0].Count())
	for i := range names {
		names[i] = "n" + strconv.Itoa(i) + "*"
	}
	if b := h.SubscribePatterns(all[0], nil, names); b[0] == '-' {
		t.Errorf("a star at the end is refused: %.80q", b)
	}
	for _, s := range all {
		h.Leave(s)
	}
	s := &Subscriber{MayHear: anyChannel, Wake: func() {}, Holder: access.NamedHolder("new", false)}
	if b := h.SubscribePatterns(s, nil, []string{"?" + strings.Repeat("b", 500)}); b[0] == '-' || steps() != 8 {
		t.Errorf("%.80q after all others have left, %d steps", b, steps())
	}
}

func TestPublishFindsEveryPattern(t *testing.T) {
	t.Parallel()
	var h Hub
	s := &Subscriber{MayHear: anyChannel, Wake: func() {}}
	patterns := strings.Split(`|*|a|a*|a**|ab|ab*|abc*|a?c|*c|[a]bc|a\bc|a*c*|b*|a?|*c?`, "|")
	h.SubscribePatterns(s, nil, patterns)
	for channel, want := range map[string]string{
		"": "|*", "a": "*|a|a*|a**", "ab": "*|a*|a**|a?|ab|ab*", "abc": "*|*c|[a]bc|a*|a**|a*c*|a?c|ab*|abc*|a\\bc",
	} {
		wanted := strings.Split(want, "|")
		slices.Sort(wanted)
		var got []string
		for _, p := range h.patterns.match(channel) {
			got = append(got, p.text)
		}
		if !slices.Equal(got, wanted) {
			t.Errorf("channel %q: patterns %q, want %q", channel, got, wanted)
		}
	}
}

// BenchmarkPublishBesidePatterns publishes on a long channel beside as many expensive patterns as the hub allows.
func BenchmarkPublishBesidePatterns(b *testing.B) {
	var h Hub
	for i := range wildSteps {
		s := &Subscriber{MayHear: anyChannel, Wake: func() {}, Holder: access.NamedHolder("admin", true)}
		h.SubscribePatterns(s, nil, []string{"*" + strconv.Itoa(i) + strings.Repeat("a", 500) + "b"})
	}
	channel := strings.Repeat("a", MaxPattern)
	for b.Loop() {
		h.Publish(channel, "", nil)
	}
}

// A publication is compared or sent to a bounded number of patterns, though every star at the end of a pattern makes
// another one that matches the same channels.
func TestStarsAtTheEndDoNotMultiplyPatterns(t *testing.T) {
	t.Parallel()
	var h Hub
	refused := 0
	for client := range 20 {
		s := &Subscriber{
			MayHear: anyChannel, Wake: func() {}, Holder: access.NamedHolder(strconv.Itoa(client), false),
		}
		for n := range 1_000 {
			text := strings.Repeat("a", n%100) + strings.Repeat("*", 1+n/100+10*client)
			if b := h.SubscribePatterns(s, nil, []string{text}); b[0] == '-' {
				refused++
			}
		}
	}
	channel := strings.Repeat("a", MaxPattern)
	if n := len(h.patterns.match(channel)); refused == 0 || n > MaxPattern+1+wildSteps {
		t.Errorf("a channel has %d patterns, %d were refused", n, refused)
	}
}

// Messages are not encoded for subscribers that have no room for them. The test counts allocations, so no other test
// may run beside it.
func TestMessagesWithoutRoomAreNotEncoded(t *testing.T) {
	var h Hub
	s := &Subscriber{MayHear: anyChannel, Wake: func() {}}
	const patterns = 500
	for n := range patterns {
		h.SubscribePatterns(s, nil, []string{strings.Repeat("a", n) + "*"})
	}
	channel, payload := strings.Repeat("a", MaxPattern), string(make([]byte, subscriberBytes/2))
	h.Publish(channel, payload, nil)
	dropped := h.Dropped()
	if n := testing.AllocsPerRun(10, func() { h.Publish(channel, payload, nil) }); n > 50 {
		t.Errorf("%.0f allocations for %d messages that nobody gets", n, patterns)
	}
	if dropped != patterns-1 || h.Dropped() <= dropped || len(h.Take(s)) != 1 {
		t.Errorf("%d messages were dropped at first, then %d", dropped, h.Dropped())
	}
}
