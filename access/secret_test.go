package access

import (
	"testing"

	"broker/core"
)

func TestChangedSecretEndsTheLoginsOfTheOldOne(t *testing.T) {
	t.Parallel()
	entry := func(password string) Entry {
		return Entry{Name: "w", FaktoryPassword: password, Grants: []Grant{{Role: Produce, Queues: []string{"q"}}}}
	}
	g, c := guardFixture(t, entry("old"))
	login := func(password string) *Principal {
		return c.ByPassword(func(p string) bool { return p == password })
	}
	open := func(p *Principal) core.ClientID {
		return g.Admit(core.ClientOptions{Protocol: core.Faktory, Wake: func() {}}, Credentials{Login: p})
	}
	may := func(id core.ClientID) bool {
		r := g.Do(id, []core.Op{&core.Submit{Tag: 1, Job: &core.Job{Queue: "q"}}}, nil)
		return len(r) == 1 && r[0].Kind == core.Submitted
	}
	first := login("old")
	id := open(first)
	if !may(id) || c.Revoked(first) {
		t.Fatal("the login is refused")
	}
	c.Load([]Entry{entry("old")})
	if !may(id) || c.Revoked(first) {
		t.Error("a reload without changes ends the login")
	}
	c.Load([]Entry{entry("new")})
	if may(id) || !c.Revoked(first) {
		t.Error("the old secret goes on working")
	}
	second := login("new")
	if second == nil || !may(open(second)) || c.Revoked(second) {
		t.Error("the new secret does not work")
	}
	c.Load(nil)
	if !c.Revoked(second) {
		t.Error("a principal that is no longer listed is not revoked")
	}
}
