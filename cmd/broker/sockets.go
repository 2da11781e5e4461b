package main

import "syscall"

// reservedFiles is how many descriptors are kept free of connections: the store fails for good if it cannot open a file.
const reservedFiles = 1200

// maxHTTPSockets is how many connections the HTTP port may have at once.
const maxHTTPSockets = 512

// sockets is how many descriptors connections may take.
type socketLimits struct {
	clients int // 0: as many as they want
	http    int
}

// share divides the descriptors that the system grants this process; 0: it grants as many as anybody wants.
func divideDescriptors(granted int) socketLimits {
	if granted == 0 {
		return socketLimits{http: maxHTTPSockets}
	}
	web := max(1, min(maxHTTPSockets, granted/16))
	return socketLimits{clients: max(granted-reservedFiles, granted/2) - web, http: web}
}

// processSocketLimits asks the system.
func processSocketLimits() socketLimits {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > 1<<30 {
		return divideDescriptors(0)
	}
	return divideDescriptors(int(limit.Cur))
}
