package cli

import (
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// heartbeatEvery is how long a program goes on at most after a client has asked for its job to stop.
const heartbeatEvery = 4 * time.Second

// program is a program that runs in a process group of its own: an interrupt from the terminal ends the worker, but not the program.
type program struct {
	cmd   *exec.Cmd
	grace time.Duration // from TERM to KILL
	done  chan struct{} // closed when the program has ended
	once  sync.Once     // of stop
}

// newProgram prepares a program. At the end of its context it is killed with its group.
func newProgram(cmd *exec.Cmd, grace time.Duration) *program {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return &program{cmd: cmd, grace: grace, done: make(chan struct{})}
}

// run starts the program and waits for its end. keep keeps the leases of its jobs meanwhile, until done is closed.
func (p *program) run(keep func(done <-chan struct{})) error {
	defer close(p.done)
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go keep(p.done) // ends when done is closed
	return p.cmd.Wait()
}

// stop asks the program and all of its group to end, and kills them after the grace. It returns at once.
func (p *program) stop() {
	p.once.Do(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM) // it may have ended just now
		go func() {                                           // ends with the program, or with the grace
			late := time.NewTimer(p.grace)
			defer late.Stop()
			select {
			case <-p.done:
			case <-late.C:
				_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // likewise
			}
		}()
	})
}

// heartbeats is how often leases are extended: often enough for the shortest of them, and to hear in time that a job should stop.
func heartbeats(leases ...leased) time.Duration {
	every := heartbeatEvery
	for i := range leases {
		if j := &leases[i].Job; j.LeaseUntil != nil && j.LeasedAt != nil {
			every = min(every, max(j.LeaseUntil.Sub(*j.LeasedAt)/3, 200*time.Millisecond))
		}
	}
	return every
}
