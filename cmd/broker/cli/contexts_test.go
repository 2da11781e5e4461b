package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// executed runs a command of this package and returns its output.
func executed(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := &cobra.Command{Use: "broker", SilenceErrors: true, SilenceUsage: true}
	root.AddGroup(&cobra.Group{ID: GroupJobs}, &cobra.Group{ID: GroupQueues}, &cobra.Group{ID: GroupOperate})
	root.AddCommand(Commands()...)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.Execute()
	return out.String(), err
}

// listServer answers every request with rows of a list, and records the requests with their tokens.
func listServer(t *testing.T, list, rows string) (url string, requests *[]string) {
	t.Helper()
	requests = &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*requests = append(*requests, r.URL.RequestURI()+" "+r.Header.Get("Authorization"))
		_, _ = fmt.Fprintf(w, `{"%s": %s}`, list, rows) // the client reports it
	}))
	t.Cleanup(server.Close)
	return server.URL, requests
}

func noContexts(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	for _, name := range []string{"BROKER_URL", "BROKER_TOKEN", "BROKER_CONTEXT"} {
		t.Setenv(name, "")
	}
	return filepath.Join(dir, "broker", "contexts.toml")
}

func TestCommandsTalkToTheChosenContext(t *testing.T) {
	file := noContexts(t)
	prod, atProd := listServer(t, "queues", "[]")
	test, atTest := listServer(t, "queues", "[]")
	for _, args := range [][]string{
		{"context", "add", "prod", "--server", prod, "--token", "secret"},
		{"context", "add", "test", "--server", test},
		{"queues"},
		{"queues", "--context", "test"},
		{"queues", "--server", test},
		{"context", "use", "test"},
		{"queues"},
		{"context", "rm", "prod"},
	} {
		if out, err := executed(t, args...); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	if len(*atProd) != 1 || !strings.HasSuffix((*atProd)[0], " Bearer secret") {
		t.Errorf("requests to prod: %q, want one with its token", *atProd)
	}
	if len(*atTest) != 3 || strings.Contains(strings.Join(*atTest, ""), "secret") {
		t.Errorf("requests to test: %q, want three without the token of prod", *atTest)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file with tokens: %v, %v", info, err)
	}
	out, err := executed(t, "context", "list")
	if err != nil || !strings.Contains(out, "*  test") || strings.Contains(out, "prod") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestContextsKeepTheFilesOfTLS(t *testing.T) {
	noContexts(t)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"queues": []}`))
	}))
	t.Cleanup(server.Close)
	ca := authorityOf(t, server)
	t.Chdir(filepath.Dir(ca))
	out, err := executed(t, "context", "add", "prod", "--server", server.URL, "--tls-ca", filepath.Base(ca))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Chdir("/")
	if out, err := executed(t, "queues"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestContextsAreRefusedWithTheReason(t *testing.T) {
	noContexts(t)
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"queues", "--context", "prod"}, ExitNotFound, `no context "prod"`},
		{[]string{"context", "use", "prod"}, ExitNotFound, `no context "prod"`},
		{[]string{"context", "add", "prod", "--server", "ftp://x"}, ExitUsage, "expected http://"},
		{[]string{"queues", "--context", "prod", "--server", "x"}, ExitUsage, "not both"},
	} {
		if out, err := executed(t, test.args...); Code(err) != test.code || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%q: exit code %d, %v\n%s", test.args, Code(err), err, out)
		}
	}
}

func TestShellsCompleteNames(t *testing.T) {
	noContexts(t)
	server, requests := listServer(t, "queues", `[{"name": "emails"}, {"name": "old-emails"}]`)
	if _, err := executed(t, "context", "add", "prod", "--server", server); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"pause", "em"}, {"push", "em"}, {"jobs", "--queue", "em"}, {"move", "--to", "em"},
	} {
		out, err := executed(t, append([]string{cobra.ShellCompNoDescRequestCmd}, args...)...)
		if err != nil || !strings.HasPrefix(out, "emails\n:4\n") {
			t.Errorf("%q: %v, %q", args, err, out)
		}
	}
	if len(*requests) != 4 || !strings.HasPrefix((*requests)[0], "/api/v1/queues?limit=100&search=em ") {
		t.Errorf("requests: %q", *requests)
	}
	for _, args := range [][]string{{"push", "emails", ""}, {"pause", "--server", "127.0.0.1:1", "em"}} {
		if out, err := executed(t, append([]string{cobra.ShellCompNoDescRequestCmd}, args...)...); err != nil ||
			!strings.HasPrefix(out, ":4\n") {
			t.Errorf("%q: %v, %q", args, err, out)
		}
	}
	if out, err := executed(t, cobra.ShellCompNoDescRequestCmd, "queues", "--context", "p"); err != nil ||
		!strings.HasPrefix(out, "prod\n") {
		t.Errorf("%v, %q", err, out)
	}
}
