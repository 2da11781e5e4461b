package access

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"strings"
	"testing"

	"broker/core"
)

func TestPatternsMatchNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"mail", "mail", true},
		{"mail", "mail2", false},
		{"*", "", true},
		{"*", "mail", true},
		{"mail.*", "mail.out", true},
		{"mail.*", "mail", false},
		{"*.out", "mail.out", true},
		{"*.out", "mail.out2", false},
		{"a*b*c", "a-b-b-c", true},
		{"a*b*c", "a-c-b", false},
		{"a*a", "a", false},
		{"a**a", "aa", true},
	} {
		if got := core.MatchQueue(c.pattern, c.name); got != c.want {
			t.Errorf("match(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
}

func TestRolesAndQueues(t *testing.T) {
	t.Parallel()
	grants := func(texts ...string) (all []Grant) {
		for _, text := range texts {
			g, err := ParseGrant(text)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, g)
		}
		return all
	}
	for _, c := range []struct {
		grants []Grant
		role   Role
		queue  string
		want   bool
	}{
		{grants("produce:mail.*"), Produce, "mail.out", true},
		{grants("produce:mail.*"), Produce, "sms", false},
		{grants("produce:mail.*"), Consume, "mail.out", false},
		{grants("produce:mail.*,sms"), Produce, "sms", true},
		{grants("operate:mail"), Read, "mail", true},
		{grants("operate"), Produce, "mail", false},
		{grants("operate"), Admin, "", false},
		{grants("admin"), Consume, "any", true},
		{grants("read", "produce"), Produce, "any", true},
		{nil, Read, "any", false},
	} {
		p := newPrincipal("p", c.grants)
		if got := p.May(c.role, c.queue); got != c.want {
			t.Errorf("%v: May(%v, %q) = %v", c.grants, c.role, c.queue, got)
		}
	}
	limited := newPrincipal("p", grants("operate:mail"))
	if limited.MayAll(Operate) || !limited.MaySome(Operate) || limited.MaySome(Consume) {
		t.Error("a role for one queue is one for all, or for none")
	}
}

func TestBadGrants(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "root", "read:", "read:a,,b", "admin:mail"} {
		if g, err := ParseGrant(text); err == nil {
			t.Errorf("ParseGrant(%q) = %v", text, g)
		}
	}
}

func TestCredentialsFindPrincipals(t *testing.T) {
	t.Parallel()
	var c Control
	if c.Default("") != Everyone || c.ByToken("secret") != nil {
		t.Error("without principals, a client is not Everyone")
	}
	c.Load([]Entry{
		{Name: "shop", TokenSHA256: HashToken("secret"), Grants: []Grant{{Role: Produce}}},
		{Name: "mailer", TLSSubject: "mailer.example", FaktoryPassword: "pw"},
	})
	shop, mailer := c.ByToken("secret"), c.ByCertificate(&x509.Certificate{
		Subject: pkix.Name{CommonName: "mailer.example"},
	})
	if shop == nil || shop.Name() != "shop" || !shop.May(Produce, "q") {
		t.Errorf("by token: %v", shop)
	}
	if mailer == nil || mailer.Name() != "mailer" {
		t.Errorf("by certificate: %v", mailer)
	}
	if got := c.ByPassword(func(p string) bool { return SamePassword(p, "pw") }); got != mailer {
		t.Errorf("by password: %v", got)
	}
	if c.ByToken("other") != nil || c.ByToken("") != nil || c.ByCertificate(nil) != nil {
		t.Error("wrong credentials find a principal")
	}
	if c.Default("") != Nobody || c.Default("shop") != shop {
		t.Error("the default principal is not the configured one")
	}
}

// Connections keep their principal; a reload changes what it may do, and ends it if its credentials change.
func TestReloadChangesPrincipalsInUse(t *testing.T) {
	t.Parallel()
	var c Control
	c.Load([]Entry{
		{Name: "shop", TokenSHA256: HashToken("one"), Grants: []Grant{{Role: Produce}}},
		{Name: "old", Grants: []Grant{{Role: Admin}}},
	})
	shop, old := c.ByToken("one"), c.Default("old")
	c.Load([]Entry{{Name: "shop", TokenSHA256: HashToken("one"), Grants: []Grant{{Role: Consume}}}})
	if shop.May(Produce, "q") || !shop.May(Consume, "q") || c.ByToken("one") != shop {
		t.Error("the principal in use has its former rights")
	}
	c.Load([]Entry{{Name: "shop", TokenSHA256: HashToken("two"), Grants: []Grant{{Role: Consume}}}})
	if shop.MaySome(Consume) || !c.ByToken("two").May(Consume, "q") || c.ByToken("one") != nil {
		t.Error("the principal in use has its former credentials")
	}
	if old.MaySome(Read) {
		t.Error("a removed principal keeps its rights")
	}
}

func TestTokenHashes(t *testing.T) {
	t.Parallel()
	sum, err := ParseTokenHash("sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b")
	if err != nil || sum != HashToken("secret") {
		t.Errorf("%x, %v", sum, err)
	}
	for _, bad := range []string{"", "secret", "sha256:", "sha256:zz", "sha256:" + strings.Repeat("g", 64)} {
		if _, err := ParseTokenHash(bad); err == nil {
			t.Errorf("ParseTokenHash(%q) passes", bad)
		}
	}
}
