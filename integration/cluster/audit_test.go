package cluster_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"broker/integration/harness"
	"broker/integration/server"
)

// administrator is the principal olga, with the token secret-of-olga; everybody else may read.
var administrator = fmt.Sprintf(`
[http]
principal = "guest"

[[principal]]
name = "guest"
roles = ["read"]

[[principal]]
name = "olga"
token = "sha256:%x"
roles = ["admin"]
`, sha256.Sum256([]byte("secret-of-olga")))

// Changes of the members, and hand-overs, are in the audit log with the principal, whichever node is asked and
// whichever leads afterwards. Refused changes are not.
func TestChangesOfTheClusterAreInTheAuditLog(t *testing.T) {
	t.Parallel()
	c := prepare(t, nil, administrator+calm).start()
	broker := func(i int, args ...string) harness.Result {
		t.Helper()
		return harness.Exec(t, harness.Command{
			Argv: append([]string{harness.Binary(t)}, args...),
			Env:  []string{"BROKER_URL=http://" + c.nodes[i].HTTP, "BROKER_TOKEN=secret-of-olga"},
		})
	}
	leader := c.leader()
	other, next := (leader+1)%size, fmt.Sprintf("n%d", (leader+2)%size+1)
	address, err := server.FreeAddr()
	check(t, err)
	for _, args := range []string{"add n4=" + address, "remove n4", "transfer " + next} {
		if r := broker(other, append([]string{"cluster"}, strings.Fields(args)...)...); r.Code != 0 {
			t.Fatalf("%s: exit code %d\n%s", args, r.Code, r.Stderr)
		}
	}
	c.awaitLeaderOtherThan(leader)
	c.ready(c.leader())
	for _, args := range []string{"add " + next + "=127.0.0.1:9", "remove n9", "transfer n9"} {
		if r := broker(other, append([]string{"cluster"}, strings.Fields(args)...)...); r.Code == 0 {
			t.Errorf("%s: was not refused", args)
		}
	}
	for i := range c.nodes {
		var got []string
		for line := range strings.Lines(broker(i, "audit").Stdout) {
			if f := strings.Fields(line); strings.Contains(line, "cluster.") {
				got = append(got, strings.Join(f[1:], " "))
			}
		}
		t.Log(got)
		if len(got) != 3 {
			t.Errorf("n%d: %q", i+1, got)
			continue
		}
		for k, words := range []string{"cluster.transfer " + next, "cluster.remove n4", "cluster.add n4"} {
			if !strings.Contains(got[k], words) || !strings.Contains(got[k], "olga") {
				t.Errorf("n%d: entry %q, not %q by olga", i+1, got[k], words)
			}
		}
	}
	c.logs(leader, "changed by an operator")
}
