package config

import (
	"net/netip"
	"testing"
)

func TestChangedSettingsAreFoundAndCopied(t *testing.T) {
	t.Parallel()
	before, c := Default(), Default()
	if got := c.Changed(&before); len(got) != 0 {
		t.Fatalf("equal settings differ: %v", got)
	}
	c.Log.Level, c.Gearman.TLSCert, c.Gearman.Allow = "debug", "/new.pem",
		Networks{netip.MustParsePrefix("10.0.0.0/8")}
	c.Throttles = map[string][]byte{"q": []byte("{}")}
	var paths []string
	for _, s := range c.Changed(&before) {
		paths = append(paths, s.Path)
		s.CopyTo(&before)
	}
	if len(paths) != 3 || paths[0] != "log.level" || paths[1] != "gearman.allow" || paths[2] != "gearman.tls_cert" {
		t.Errorf("changed: %v", paths)
	}
	if got := c.Changed(&before); len(got) != 0 || before.Gearman.TLSCert != "/new.pem" || before.Workq.TLSCert != "" {
		t.Errorf("after the copy: %v, %+v", got, before)
	}
}
