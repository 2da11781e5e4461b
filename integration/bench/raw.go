package main

import (
	"syscall"
	"unsafe"
)

// The system calls of a loop bypass the Go scheduler. A loop owns its thread, and there is one more P than loops, so
// nothing waits for it. If the scheduler knew of every call, it would retake the P whenever a loop sleeps for 20 µs,
// and its checks would use the cores that the servers need.

func rawRead(fd int, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func rawWrite(fd int, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func rawEpollWait(epoll int, events []syscall.EpollEvent, millis int) (int, error) {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(epoll),
		uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), uintptr(millis), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// cpuNanos returns the CPU time of a process, at a finer resolution than /proc.
func cpuNanos(pid int) (int64, error) {
	const ofAllThreads = 2 // the scheduler's own count; see clock_getcpuclockid(3)
	var at syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, uintptr(^pid<<3|ofAllThreads),
		uintptr(unsafe.Pointer(&at)), 0)
	if errno != 0 {
		return 0, errno
	}
	return at.Nano(), nil
}

// allocated returns the disk space that a file uses.
func allocated(path string) (int64, error) {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return 0, err
	}
	const blockBytes = 512
	return st.Blocks * blockBytes, nil
}
