package process

import "testing"

// A leader that is about to lose the lead refuses a link as one of an older build does. Clients whose bytes are passed
// on to it end with it.
func TestLeaderHasNoLinksOnlyIfItRefusesAgain(t *testing.T) {
	t.Parallel()
	var r refusals
	if r.by("n1") {
		t.Error("one refusal counts")
	}
	if r.leaderChanged(); r.by("n1") {
		t.Error("a refusal before n1 was elected again counts")
	}
	if !r.by("n1") || r.by("n1") {
		t.Error("the second refusal in a row is not told, or told again")
	}
	if r.leaderChanged(); r.by("n1") {
		t.Error("a build that is known is told again")
	}
	if r.forgetOthers("n1") || !r.forgetOthers("n2") || r.forgetOthers("n3") {
		t.Error("the refusals of n1 are not forgotten once another node leads")
	}
	if r.by("n2") {
		t.Error("a refusal of n1 counts for n2")
	}
}
