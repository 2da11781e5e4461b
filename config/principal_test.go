package config

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

func TestPrincipals(t *testing.T) {
	t.Parallel()
	token := write(t, "token", "secret\n")
	password := write(t, "password", "pw\n")
	c, err := Load(Sources{File: write(t, "broker.toml", fmt.Sprintf(`
[http]
principal = "viewer"
[[principal]]
name = "shop"
token = %q
faktory_password = %q
roles = ["produce:mail.*,sms", "read"]
[[principal]]
name = "viewer"
tls_subject = "CN=viewer,O=Example"
roles = []
`, token, password))})
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("secret")))
	if p := c.Principals[0]; p.Name != "shop" || p.Token != want || p.FaktoryPassword != "pw" ||
		fmt.Sprint(p.Roles) != "[produce:mail.*,sms read]" {
		t.Errorf("%+v", p)
	}
	if p := c.Principals[1]; p.TLSSubject != "CN=viewer,O=Example" || c.HTTP.Principal != "viewer" {
		t.Errorf("%+v", p)
	}
}

func TestBadPrincipals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[principal]\nname = \"a\"\n":                            "principal: not written as [[principal]] (FILE, line 1)",
		"[[principal]]\nroles = [\"read\"]\n":                    "principal[0].name: missing (FILE, line 1)",
		"[[principal]]\nname = \"a\"\ncolour = \"red\"\n":        "principal[0].colour: unknown setting (FILE, line 3)",
		"[[principal]]\nname = \"a\"\ntoken = \"/nowhere\"\n":    "principal[0].token: read /nowhere: no such file or directory (FILE, line 3)",
		"[[principal]]\nname = \"a\"\n[[principal]]\nname=\"a\"": "principal[1].name: is that of principal[0] too (FILE, line 4)",
		"[gearman]\nprincipal = \"a\"\n":                         `gearman.principal: there is no principal "a" (FILE, line 2)`,
	} {
		file := write(t, "broker.toml", text)
		_, err := Load(Sources{File: file})
		if got := fmt.Sprint(err); got != strings.ReplaceAll(want, "FILE", file) {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func TestSourcesOfSettings(t *testing.T) {
	t.Parallel()
	file := write(t, "broker.toml", "[http]\nlisten = \"127.0.0.1:1\"\n")
	c, err := Load(Sources{
		File: file, Env: []string{"BROKER_DATA=/x"}, Flags: map[string]string{"workq.listen": "127.0.0.1:2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"http.listen": file, "data": "BROKER_DATA", "workq.listen": "flag", "durability": "default",
	} {
		if got := c.Source(path); got != want {
			t.Errorf("%s comes from %s", path, got)
		}
	}
}
