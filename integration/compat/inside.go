package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"broker/integration/server"
)

// insideArgument makes this program run one suite beside one server, in the network namespace that it finds itself in.
const insideArgument = "inside"

// errInside is the exit code if the server did not start or the suite could not be run.
const errInside = 125

// job is what the process inside the namespace reads from its standard input.
type job struct {
	Server, Ports []string // the command line of the server, and addresses that it listens on
	Before        string   // a shell command that prepares the server; may be empty
	Shell, Folder string
	Env           []string
}

// inside starts the server, runs the suite with its output on the standard output, and returns its exit code.
func inside() int {
	code, err := runInside()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return errInside
	}
	return code
}

func runInside() (int, error) {
	var j job
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 0, err
	}
	if err := json.Unmarshal(input, &j); err != nil {
		return 0, err
	}
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return 0, fmt.Errorf("the loopback interface: %w %s", err, out)
	}
	dir, err := os.MkdirTemp("", "broker-compat-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a leftover of a server that is gone
	p, err := server.Launch(server.Spec{
		Name: "server", Argv: j.Server, Dir: dir, Logs: dir, Env: []string{"BROKER_MIN_FREE_DISK=0"},
	})
	if err != nil {
		return 0, err
	}
	defer p.Stop(10 * time.Second)
	for _, port := range j.Ports {
		if err := server.WaitListening(p, port, time.Minute); err != nil {
			return 0, err
		}
	}
	for _, shell := range []string{j.Before, j.Shell} {
		if shell == "" {
			continue
		}
		cmd := exec.Command("bash", "-c", shell)
		cmd.Dir, cmd.Stdout, cmd.Stderr = j.Folder, os.Stdout, os.Stdout
		cmd.Env = append(os.Environ(), j.Env...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err = cmd.Run(); cmd.ProcessState == nil {
			return 0, err
		}
		if code := cmd.ProcessState.ExitCode(); code != 0 {
			return code, nil
		}
	}
	return 0, nil
}
