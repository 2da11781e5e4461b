package config

import (
	"slices"
	"testing"
)

// A reload changes these settings together or not at all. Add every new setting that controls access.
func TestSettingsThatGuardAccessAreMarked(t *testing.T) {
	t.Parallel()
	c := Default()
	var got []string
	for _, s := range Settings(&c) {
		if s.GuardsAccess {
			got = append(got, s.Path)
		}
	}
	want := []string{
		"http.listen", "http.allow", "http.tls_cert", "http.tls_key", "http.tls_client_ca", "http.principal", "http.profiling", "http.password",
	}
	for _, protocol := range allWireNames() {
		for _, name := range []string{"listen", "namespace", "principal", "allow", "tls_cert", "tls_key", "tls_client_ca"} {
			want = append(want, protocol+"."+name)
		}
	}
	want = append(want, "gearman.allow_shutdown", "faktory.password", "faktory.flush", "qless.password", "qless.allow_flush", "conveyor.password")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("marked are\n%q, not\n%q", got, want)
	}
}

func TestFaktorysPasswordDoesNotOpenHTTP(t *testing.T) {
	t.Parallel()
	for text, locked := range map[string]bool{
		"":                            false,
		"[faktory]\npassword = 'p'\n": true,
		"[faktory]\npassword = 'p'\n[http]\npassword = 'q'\n":                                               false,
		"[faktory]\npassword = 'p'\n[[principal]]\nname = 'a'\nfaktory_password = 'b'\nroles = ['admin']\n": false,
	} {
		c, err := Load(Sources{File: write(t, "broker.toml", text)})
		if err != nil || c.HTTPLocked() != locked || c.HTTP.Password == "p" {
			t.Errorf("%q: locked %v, password %q, %v", text, c.HTTPLocked(), c.HTTP.Password, err)
		}
	}
}
