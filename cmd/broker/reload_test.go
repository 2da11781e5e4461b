package main

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// reloadFixture is a broker with a settings file and two ports: Workq's with TLS, Gearman's without.
type reloadFixture struct {
	*startedProgram
	path           string
	workq, gearman string
	times          int
}

func startReloadable(t *testing.T, settings string) *reloadFixture {
	t.Helper()
	r := &reloadFixture{path: filepath.Join(t.TempDir(), "broker.toml")}
	r.workq, _ = freeAddress(t)
	r.gearman, _ = freeAddress(t)
	if err := os.WriteFile(r.path, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	r.startedProgram = start(t, nil, "broker", "serve", "--config", r.path, "--durability", "none", "--workq", r.workq,
		"--gearman", r.gearman, "--faktory", "off", "--http", "off")
	eventually(t, "ready", func() bool { return strings.Contains(r.output.String(), `"message":"ready"`) })
	return r
}

// rewrite replaces the settings, reloads them, and returns the log of the reload.
func (r *reloadFixture) rewrite(settings string) string {
	r.t.Helper()
	before := len(r.output.String())
	if err := os.WriteFile(r.path, []byte(settings), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.signal(syscall.SIGHUP)
	r.times++
	eventually(r.t, "the settings to be read again", func() bool {
		said := r.output.String()
		answers := strings.Count(said, "settings reloaded") + strings.Count(said, "reload failed") +
			strings.Count(said, "reload refused")
		return answers == r.times
	})
	return r.output.String()[before:]
}

// serial returns the serial number of the certificate that a new connection gets; 0 if the connection fails. shown is
// the client's certificate.
func (r *reloadFixture) serial(shown ...tls.Certificate) int64 {
	c, err := tls.Dial("tcp", r.workq, &tls.Config{InsecureSkipVerify: true, Certificates: shown})
	if err != nil {
		return 0
	}
	defer func() { _ = c.Close() }() // the replies were read
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, "lease q 0\r\n"); err != nil {
		return 0
	}
	if _, err := io.ReadFull(c, make([]byte, len("-TIMEOUT\r\n"))); err != nil {
		return 0 // a client without the right certificate fails here
	}
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func (r *reloadFixture) wantSerial(what string, want int64, shown ...tls.Certificate) {
	r.t.Helper()
	if got := r.serial(shown...); got != want {
		r.t.Errorf("%s: certificate %d, not %d", what, got, want)
	}
}

// secured are settings with TLS for Workq.
func secured(cert, key, more string) string {
	return fmt.Sprintf("%s\n[workq]\ntls_cert = %q\ntls_key = %q\n", more, cert, key)
}

func TestReloadReadsCertificatesFromNewPaths(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir()}
	cert, key, _ := writeCertificate(t, dirs[0], 1)
	otherCert, otherKey, _ := writeCertificate(t, dirs[1], 2)
	r := startReloadable(t, secured(cert, key, ""))
	r.wantSerial("at first", 1)
	r.rewrite(secured(otherCert, otherKey, ""))
	r.wantSerial("other files", 2)

	// A mistake in another setting keeps all settings, but the certificate files are read again.
	writeCertificate(t, dirs[1], 3)
	said := r.rewrite(secured(cert, key, "min_free_disk = \"lots\"\n[log]\nlevel = \"loud\""))
	for _, words := range []string{
		`min_free_disk: `, `log.level: \"loud\"`, "reload failed, keeping the old settings",
	} {
		if !strings.Contains(said, words) {
			t.Errorf("%s is not in the log: %s", words, said)
		}
	}
	r.wantSerial("a mistake elsewhere", 3)

	// A reload can neither enable nor disable TLS.
	said = r.rewrite(fmt.Sprintf("[gearman]\ntls_cert = %q\ntls_key = %q\n", cert, key))
	if !strings.Contains(said, `"settings":["workq.tls_cert","workq.tls_key","gearman.tls_cert","gearman.tls_key"]`) {
		t.Errorf("TLS switched off and on: %s", said)
	}
	r.wantSerial("TLS switched off", 3)
	if got := dialGearman(t, r.gearman).ask("version"); !strings.HasPrefix(got, "OK") {
		t.Errorf("TLS switched on: %q", got)
	}
}

func TestReloadReplacesTheClientCA(t *testing.T) {
	t.Parallel()
	dirs := []string{t.TempDir(), t.TempDir()}
	cert, key, _ := writeCertificate(t, dirs[0], 1)
	otherCert, otherKey, _ := writeCertificate(t, dirs[1], 2)
	ours, theirs := clientOf(t, cert, key), clientOf(t, otherCert, otherKey)
	demand := func(authority string) string {
		return secured(cert, key, "") + fmt.Sprintf("tls_client_ca = %q\n", authority)
	}
	r := startReloadable(t, demand(cert))
	r.wantSerial("ours", 1, ours)
	r.wantSerial("theirs", 0, theirs)
	r.rewrite(demand(otherCert))
	r.wantSerial("ours, after theirs was named", 0, ours)
	r.wantSerial("theirs, after it was named", 1, theirs)
	r.wantSerial("none", 0)
}

// clientOf creates a client certificate signed by an authority.
func clientOf(t *testing.T, certFile, keyFile string) tls.Certificate {
	t.Helper()
	authority, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(9), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	private := authority.PrivateKey.(*ecdsa.PrivateKey) // the client uses the same key
	der, err := x509.CreateCertificate(nil, template, authority.Leaf, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// lineWith is the first line that contains the words.
func lineWith(text, words string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, words) {
			return line
		}
	}
	return "no line with " + words
}

func TestCronUsesTheTimeZoneOfTheProcess(t *testing.T) {
	t.Parallel()
	settings := filepath.Join(t.TempDir(), "broker.toml")
	text := "[[cron]]\nschedule = \"0 9 * * *\"\n[cron.job]\ntype = \"T\"\nqueue = \"mornings\"\n" +
		"[[cron]]\nschedule = \"* * * * * *\"\n[cron.job]\ntype = \"Tick\"\n"
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	address, port := freeAddress(t)
	gearman, _ := freeAddress(t)
	start(t, []string{"TZ=Asia/Tokyo"}, "broker", "serve", "--config", settings, "--durability", "none", "--workq",
		"off",
		"--gearman", gearman, "--faktory", "off", "--http", address)
	var answer struct {
		Schedules []struct {
			Cron, Type, Queue string
			NextAt            time.Time `json:"next_at"`
			LastAt            time.Time `json:"last_at"`
		}
	}
	eventually(t, "a run of the second entry", func() bool {
		resp, err := http.Get("http://127.0.0.1:" + port + "/api/v1/schedules")
		if err != nil {
			return false
		}
		defer func() { _ = resp.Body.Close() }() // it was read
		return json.NewDecoder(resp.Body).Decode(&answer) == nil && len(answer.Schedules) == 2 &&
			!answer.Schedules[1].LastAt.IsZero()
	})
	first := answer.Schedules[0]
	if first.Cron != "0 9 * * *" || first.Type != "T" || first.Queue != "mornings" || !first.LastAt.IsZero() {
		t.Errorf("the first entry: %+v", first)
	}
	if at := first.NextAt.UTC(); at.Hour() != 0 || at.Minute() != 0 {
		t.Errorf("nine in Tokyo is at %v", at)
	}
	if second := answer.Schedules[1]; !second.NextAt.After(second.LastAt) {
		t.Errorf("the second entry: %+v", second)
	}
}

func TestSettingsNameTheirSourceAfterAReload(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "broker.toml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	port, _ := freeAddress(t)
	p := start(t, nil, "broker", "serve", "--config", file, "--durability", "none", "--workq", "off",
		"--gearman", "off", "--faktory", "off", "--http", port)
	eventually(t, "ready", func() bool { return strings.Contains(p.output.String(), `"message":"ready"`) })
	source := func() string {
		var answer struct {
			Settings []struct{ Name, Source string }
		}
		resp, err := http.Get("http://" + port + "/api/v1/settings")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }() // read
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
			t.Fatal(err)
		}
		for _, s := range answer.Settings {
			if s.Name == "log.level" {
				return s.Source
			}
		}
		return "none"
	}
	if got := source(); got != "default" {
		t.Errorf("at the start, log.level is from %q", got)
	}
	write("log.level = 'warn'")
	p.signal(syscall.SIGHUP)
	eventually(t, "log.level to be from the file", func() bool { return source() == file })
	write("")
	p.signal(syscall.SIGHUP)
	eventually(t, "log.level to be the default", func() bool { return source() == "default" })
}
