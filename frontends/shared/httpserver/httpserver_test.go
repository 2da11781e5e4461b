package httpserver

import (
	"bufio"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A client that sends half a body is answered or disconnected after the time for a request.
func TestHalfABodyEndsTheConnection(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	s := New(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		read <- err
	}), 50*time.Millisecond, time.Second)
	go func() { _ = s.Serve(ln) }() // until it is closed
	t.Cleanup(func() { _ = s.Close() })
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhalf"); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err == nil {
		t.Error("the body was read as if it were whole")
	}
	if _, err := io.Copy(io.Discard, bufio.NewReader(c)); err != nil {
		t.Errorf("the end of the connection: %v", err)
	}
}

// Every server of the program is made by New, so none lacks a limit.
func TestServersAreMadeHere(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	other := regexp.MustCompile(`(^|[^.\w])http\.(Server\{|(ListenAndServe|Serve)(TLS)?\()`)
	files := 0
	for _, folder := range []string{"access", "cmd", "config", "core", "frontends", "migrate", "operate"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") ||
				filepath.Base(filepath.Dir(path)) == "httpserver" {
				return err
			}
			files++
			b, err := os.ReadFile(path)
			if other.Match(b) {
				t.Errorf("%s has a server of its own", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 100 {
		t.Errorf("only %d files were read", files)
	}
}
