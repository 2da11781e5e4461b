package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestPushTargets(t *testing.T) {
	t.Parallel()
	secret := write(t, "secret", "s3cret\n")
	text := certificateText(t)
	ca := write(t, "ca.pem", text)
	c, err := Load(Sources{File: write(t, "broker.toml", `
[[push]]
name = "shop"
queues = ["mail", "resize"]
url = "https://shop.example.com/jobs?a=b"
concurrency = 4
rate_per_s = 2.5
timeout = 60
secret = "`+secret+`"
headers = {authorization = "Bearer x"}
ca = "`+ca+`"

[[push]]
name = "local"
queues = ["x"]
url = "http://[::1]:8080/"
timeout = "90s"
`)})
	if err != nil {
		t.Fatal(err)
	}
	want := []Push{
		{
			Name: "shop", Queues: []string{"mail", "resize"}, URL: "https://shop.example.com/jobs?a=b", Concurrency: 4,
			Rate: 2.5, Timeout: time.Minute,
			Secret: "s3cret", CA: ca, CAPEM: []byte(text), Headers: map[string]string{"Authorization": "Bearer x"},
		},
		{Name: "local", Queues: []string{"x"}, URL: "http://[::1]:8080/", Concurrency: 10, Timeout: 90 * time.Second},
	}
	if !reflect.DeepEqual(c.Pushes, want) {
		t.Errorf("targets: %+v", c.Pushes)
	}
}

func TestPushTargetsAreChecked(t *testing.T) {
	t.Parallel()
	const valid = "name = \"a\"\nqueues = [\"q\"]\nurl = \"https://h/\"\n"
	noCertificate := write(t, "empty.pem", "none")
	for name, c := range map[string]struct{ file, want string }{
		"not a list": {"[push]\nname = \"a\"", "push: must be written as [[push]]"},
		"nothing":    {"[[push]]", "push[0].name: missing"},
		"no queue":   {"[[push]]\nname = \"a\"\nurl = \"https://h/\"", "push[0].queues: missing"},
		"empty queue": {
			"[[push]]\nname = \"a\"\nurl = \"https://h/\"\nqueues = [\"\"]",
			"push[0].queues: the name of a queue has 1 to 512 bytes",
		},
		"no address": {"[[push]]\nname = \"a\"\nqueues = [\"q\"]", "push[0].url: missing"},
		"name with a space": {
			"[[push]]\nname = \"a b\"\nqueues = [\"q\"]\nurl = \"https://h/\"",
			"push[0].name: \"a b\" contains a space",
		},
		"same name": {
			"[[push]]\n" + valid + "[[push]]\n" + valid, "push[1].name: \"a\" is the name of another target",
		},
		"no URL": {
			"[[push]]\nname = \"a\"\nqueues = [\"q\"]\nurl = \"shop\"", "push[0].url: \"shop\" is not a URL",
		},
		"another scheme": {
			"[[push]]\nname = \"a\"\nqueues = [\"q\"]\nurl = \"ftp://h/\"", "push[0].url: \"ftp://h/\" is not a URL",
		},
		"clear text": {
			"[[push]]\nname = \"a\"\nqueues = [\"q\"]\nurl = \"http://shop.example.com/\"",
			"push[0].url: shop.example.com is another host: use https",
		},
		"looks like here": {
			"[[push]]\nname = \"a\"\nqueues = [\"q\"]\nurl = \"http://127.0.0.1.example.com/\"",
			"is another host: use https",
		},
		"password in a URL": {
			"[[push]]\nname = \"a\"\nqueues = [\"q\"]\nurl = \"https://u:p@h/\"",
			"push[0].url: a user and a password belong into headers",
		},
		"fragment": {
			"[[push]]\nname = \"a\"\nqueues = [\"q\"]\nurl = \"https://h/#x\"",
			"push[0].url: a part behind # is never sent",
		},
		"concurrency": {
			"[[push]]\n" + valid + "concurrency = 0", "push[0].concurrency: 0 is not between 1 and 1000",
		},
		"rate": {"[[push]]\n" + valid + "rate_per_s = -1.0", "push[0].rate_per_s: -1 is not between"},
		"timeout": {
			"[[push]]\n" + valid + "timeout = \"500ms\"", "push[0].timeout: 500ms is not between 1s and 1h0m0s",
		},
		"missing secret": {
			"[[push]]\n" + valid + "secret = \"/does/not/exist\"", "push[0].secret: read /does/not/exist",
		},
		"missing CA": {"[[push]]\n" + valid + "ca = \"/does/not/exist\"", "push[0].ca: read /does/not/exist"},
		"no certificate": {
			"[[push]]\n" + valid + "ca = \"" + noCertificate + "\"", "push[0].ca: there is no certificate",
		},
		"no headers": {"[[push]]\n" + valid + "headers = 1", "push[0].headers: not a table"},
		"no text":    {"[[push]]\n" + valid + "headers = {a = 1}", "push[0].headers.a: 1 is not a string"},
		"own header": {
			"[[push]]\n" + valid + "headers = {broker-queue = \"x\"}",
			"push[0].headers.Broker-Queue: is set by the broker",
		},
		"two headers": {
			"[[push]]\n" + valid + "headers = {a = \"x\\r\\ny: z\"}",
			"push[0].headers.A: the value contains a control character",
		},
		"no header": {"[[push]]\n" + valid + "headers = {\"a b\" = \"x\"}", "is not the name of a header"},
		"unknown":   {"[[push]]\n" + valid + "proxy = \"x\"", "push[0].proxy: unknown setting"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Load(Sources{File: write(t, "broker.toml", c.file)})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// certificateText is a certificate in PEM.
func certificateText(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
