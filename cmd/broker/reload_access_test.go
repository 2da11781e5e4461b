package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A reload changes all access rules or none: old rules must not end before their replacements apply.
func TestReloadNeverWidensAccess(t *testing.T) {
	t.Parallel()
	port, _ := freeAddress(t)
	other, _ := freeAddress(t)
	cert, key, _ := writeCertificate(t, t.TempDir(), 1)
	const shop = "[[principal]]\nname = \"shop\"\ntoken = \"sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\"\nroles = [\"admin\"]\n"
	httpAt := func(more string) string { return fmt.Sprintf("[http]\nlisten = %q\n%s", port, more) }
	before := httpAt("") + shop
	settings := filepath.Join(t.TempDir(), "broker.toml")
	write := func(text string) {
		if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(before)
	p := start(t, nil, "broker", "serve", "--config", settings, "--durability", "none", "--workq", "off", "--gearman",
		"off", "--faktory", "off")
	eventually(t, "ready", func() bool { return strings.Contains(p.output.String(), `"message":"ready"`) })
	status := func(token string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+port+"/api/v1/settings",
			http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // not read
		return resp.StatusCode
	}
	for _, c := range []struct{ name, settings, says string }{
		{
			"a password in place of the principals", httpAt("password = \"p\"\n"),
			`"settings":["http.password","principal"]`,
		},
		{"another address", fmt.Sprintf("[http]\nlisten = %q\n", other) + shop, `"settings":["http.listen"]`},
		{"the principals are gone", httpAt(""), `"settings":["principal"]`},
		{
			"an allow list in place of the principals", httpAt("allow = [\"10.0.0.0/8\"]\n"),
			`"settings":["http.allow","principal"]`,
		},
		{"a default principal", httpAt("principal = \"shop\"\n") + shop, `"settings":["http.principal"]`},
		{
			"TLS in place of the principals",
			httpAt(fmt.Sprintf("tls_cert = %q\ntls_key = %q\ntls_client_ca = %q\n", cert, key, cert)),
			`"settings":["http.tls_cert","http.tls_key","http.tls_client_ca","principal"]`,
		},
		{"profiles", httpAt("profiling = true\n") + shop, `"settings":["http.profiling"]`},
		{"a data folder", fmt.Sprintf("data = %q\n", t.TempDir()) + before, `"settings":["data"]`},
		{"a default lease", "default_lease = \"2h\"\n" + before, `"settings":["default_lease"]`},
		{"a password of Faktory", "[faktory]\npassword = \"p\"\n" + before, `"settings":["faktory.password"]`},
	} {
		at := len(p.output.String())
		write(c.settings + "[log]\nlevel = \"debug\"\n[throttles.q]\nconcurrency = 1\n")
		p.signal(syscall.SIGHUP)
		eventually(t, c.name+": the end of the reload", func() bool {
			return strings.Contains(p.output.String()[at:], `reload refused: settings need a restart`) ||
				strings.Contains(p.output.String()[at:], "settings reloaded")
		})
		said := p.output.String()[at:]
		if line := lineWith(said, "reload refused"); !strings.Contains(line, c.says) ||
			strings.Count(said, `"level":"error"`) != 1 {
			t.Errorf("%s: the log says %s", c.name, said)
		}
		if strings.Contains(said, "settings reloaded") || strings.Contains(said, "setting changed") {
			t.Errorf("%s: a part of the settings is in force: %s", c.name, said)
		}
		if got := status(""); got != http.StatusUnauthorized {
			t.Errorf("%s: a client without credentials gets status %d", c.name, got)
		}
		if got := status("secret"); got != http.StatusOK {
			t.Errorf("%s: the principal gets status %d", c.name, got)
		}
	}
	at := len(p.output.String())
	write(strings.ReplaceAll(before, "admin", "produce"))
	p.signal(syscall.SIGHUP)
	eventually(t, "principals to change",
		func() bool { return strings.Contains(p.output.String()[at:], "settings reloaded") })
	if got := status("secret"); got != http.StatusForbidden {
		t.Errorf("with other roles the principal gets status %d", got)
	}
}

func TestReloadNeverStopsAskingForClientCertificates(t *testing.T) {
	t.Parallel()
	cert, key, _ := writeCertificate(t, t.TempDir(), 1)
	known := clientOf(t, cert, key)
	r := startReloadable(t, secured(cert, key, "")+fmt.Sprintf("tls_client_ca = %q\n", cert))
	r.wantSerial("with a certificate", 1, known)
	if said := r.rewrite(secured(cert, key, "")); !strings.Contains(said, `"settings":["workq.tls_client_ca"]`) {
		t.Errorf("the log says %s", said)
	}
	r.wantSerial("without a certificate", 0)
	r.wantSerial("with a certificate", 1, known)
}

// After a mistake in the file, the log does not say that the file was read.
func TestFailedReloadDoesNotSaySettingsReloaded(t *testing.T) {
	t.Parallel()
	r := startReloadable(t, "")
	for _, broken := range []string{"[log\n", "[log]\nlevel = \"loud\"\n"} {
		if said := r.rewrite(broken); strings.Contains(said, "settings reloaded") ||
			!strings.Contains(said, "reload failed, keeping the old settings") {
			t.Errorf("the log says %s", said)
		}
	}
	if said := r.rewrite("[log]\nlevel = \"debug\"\n"); !strings.Contains(said, "settings reloaded") {
		t.Errorf("the log says %s", said)
	}
}
