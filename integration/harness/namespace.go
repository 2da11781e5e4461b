package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"broker/integration/server"
)

// inNamespaces tells the test binary that it was started again in namespaces of its own.
const inNamespaces = "BROKER_TEST_IN_NAMESPACES"

// InNamespaces runs the test again, alone, in a process with network and mount namespaces of its own, and reports its
// result; there it returns true. All that the test changes in its namespaces ends with that process. It requires root
// and the program ip.
func InNamespaces(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inNamespaces) != "" {
		return true
	}
	if _, err := exec.LookPath("ip"); err != nil || os.Geteuid() != 0 {
		skip(t, fmt.Sprintf("only root can make the network of this test, with ip (user %d, %v)", os.Geteuid(), err))
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inNamespaces+"=1", "BROKER_BIN="+Binary(t))
	cmd.SysProcAttr = server.OwnNetwork(syscall.SIGKILL)
	cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNS
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		skip(t, fmt.Sprintf("this machine does not allow the namespaces of this test: %v", err))
	}
	if err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}
