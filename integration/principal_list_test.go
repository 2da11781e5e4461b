package integration_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"broker/integration/harness"
)

// An empty list would look like a broker without queues.
func TestListOfQueuesSaysThatReadingIsNotAllowed(t *testing.T) {
	t.Parallel()
	b := harness.Start(t, harness.Options{Config: fmt.Sprintf(
		"[[principal]]\nname = \"shop\"\ntoken = \"sha256:%x\"\nroles = [\"produce\"]\n",
		sha256.Sum256([]byte("shop-token")))})
	r := harness.Exec(t, harness.Command{
		Argv: []string{harness.Binary(t), "queues", "--server", "http://" + b.HTTP},
		Env:  []string{"BROKER_TOKEN=shop-token"},
	})
	if r.Code != 6 || !strings.Contains(r.Stderr, "principal shop lacks the role read") {
		t.Errorf("exit code %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
}
