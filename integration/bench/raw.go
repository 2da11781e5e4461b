package main

import (
	"syscall"
	"unsafe"
)

// The system calls of a loop pass the Go scheduler by. A loop owns its thread and there is a processor for each loop
// and one more, so nobody waits for it; told of every call, the scheduler would take the processor away whenever a loop
// sleeps for twenty microseconds, and look that often whether it should, on cores that the servers need.

func rawRead(fd int, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func rawWrite(fd int, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
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
