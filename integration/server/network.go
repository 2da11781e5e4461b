package server

import (
	"os"
	"syscall"
)

// OwnNetwork makes a process start in a network namespace of its own, which has nothing but a loopback interface that
// is down. Root may always make one; other users may on most machines. The process gets the signal when the thread that
// started it ends.
func OwnNetwork(atEnd syscall.Signal) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: atEnd}
	if os.Geteuid() != 0 {
		a.Cloneflags |= syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	return a
}
