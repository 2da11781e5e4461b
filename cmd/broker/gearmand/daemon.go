package gearmand

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// daemonMark in the environment marks the background process; it reports on readyFD that it serves.
const (
	daemonMark = "BROKER_DAEMONIZED"
	readyFD    = 3
)

// IsDaemon reports whether this is the background process of --daemon.
func IsDaemon() bool { return os.Getenv(daemonMark) != "" }

// startDaemon starts this program again in a new session and waits until it serves clients. So the caller can connect
// at once, or gets the error.
func startDaemon() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	ready, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := &exec.Cmd{
		Path: program, Args: os.Args, Env: append(os.Environ(), daemonMark+"=1"),
		Stdout: os.Stdout, Stderr: os.Stderr, ExtraFiles: []*os.File{theirs},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	_ = theirs.Close() // the other process has its own
	if _, err := ready.Read(make([]byte, 1)); err == nil {
		return nil
	}
	_ = cmd.Wait() // the daemon has reported the reason
	return errors.New("the daemon did not start")
}

// daemonReady lets the waiting parent exit and detaches from the terminal.
func daemonReady() error {
	if !IsDaemon() {
		return nil
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	for fd := range 3 {
		if err := syscall.Dup3(int(null.Fd()), fd, 0); err != nil {
			return fmt.Errorf("detach from the terminal: %w", err)
		}
	}
	ready := os.NewFile(readyFD, "ready")
	if _, err := io.WriteString(ready, "."); err != nil {
		return fmt.Errorf("notify the parent process: %w", err)
	}
	return errors.Join(ready.Close(), null.Close())
}

// writePID writes the process id.
func writePID(path string) error {
	if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
		var p *os.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return fmt.Errorf("Could not open pid file for writing: %s (%w)", path, err) //nolint:staticcheck // ST1005: gearmand's own words
	}
	return nil
}

// findUser looks up the user of --user.
func findUser(name string) (*user.User, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("Must be root to switch users.") //nolint:staticcheck // ST1005: gearmand's own words
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("Could not find user : %s", name) //nolint:staticcheck // ST1005: gearmand's own words
	}
	return u, nil
}

// dropPrivileges switches to the user of --user. It changes the owner of the files that the broker will write.
func (g *launcher) dropPrivileges() error {
	name, ok := g.options["user"]
	if !ok {
		return nil
	}
	u, err := findUser(name)
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return err
	}
	var theirs []string
	if g.logFile != nil {
		theirs = append(theirs, g.logFile.path)
	}
	if c := &g.config; c.Durability != "none" {
		theirs = append(theirs, c.Data)
	}
	for _, path := range theirs {
		if err := chownAll(path, uid, gid); err != nil {
			return err
		}
	}
	return setUser(uid, gid)
}

// chownAll changes the owner of a file, or of a folder with its content, because root may have used the store before.
func chownAll(path string, uid, gid int) error {
	return filepath.WalkDir(path, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	})
}

// setUser changes the user of all threads.
func setUser(uid, gid int) error {
	if err := syscall.Setgroups([]int{gid}); err != nil {
		return fmt.Errorf("set groups: %w", err)
	}
	if err := syscall.Setgid(gid); err != nil {
		return fmt.Errorf("set group: %w", err)
	}
	if err := syscall.Setuid(uid); err != nil {
		return fmt.Errorf("set user: %w", err)
	}
	return nil
}
