package cli

import (
	"os/exec"
	"sync"
	"syscall"
	"time"

	"broker/operate/service"
)

// heartbeatEvery is the maximum time until a program is stopped after a client has cancelled its job.
const heartbeatEvery = 4 * time.Second

// program runs in its own process group, so that an interrupt from the terminal ends the worker but not the program.
type program struct {
	cmd   *exec.Cmd
	grace time.Duration // from TERM to KILL
	done  chan struct{} // closed when the program has ended
	once  sync.Once     // guards stop
}

// newProgram prepares a program. When its context ends, the program is killed with its group.
func newProgram(cmd *exec.Cmd, grace time.Duration) *program {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return &program{cmd: cmd, grace: grace, done: make(chan struct{})}
}

// run starts the program and waits for its end. Until done is closed, keep extends the leases of its jobs.
func (p *program) run(keep func(done <-chan struct{})) error {
	defer close(p.done)
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go keep(p.done) // ends when done is closed
	return p.cmd.Wait()
}

// stop asks the program and its group to end, and kills them after the grace period. It returns at once.
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

// heartbeats is the interval of heartbeats. It is short enough for the shortest lease, and to notice in time that a job
// should stop.
func heartbeats(leases ...service.Lease) time.Duration {
	every := heartbeatEvery
	for i := range leases {
		if j := &leases[i].Job; j.LeaseUntil != nil && j.LeasedAt != nil {
			every = min(every, max(j.LeaseUntil.Sub(*j.LeasedAt)/3, 200*time.Millisecond))
		}
	}
	return every
}
