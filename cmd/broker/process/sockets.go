package process

import "syscall"

// reservedFiles is the number of descriptors that connections must leave, because the store fails permanently if it
// cannot open a file.
const reservedFiles = 1200

// maxHTTPSockets limits the connections of the HTTP port.
const maxHTTPSockets = 1024

// socketLimits are the numbers of descriptors that connections may use.
type socketLimits struct {
	clients int // 0: no limit
	http    int
}

// divideDescriptors divides the process's descriptor limit; 0: no limit.
func divideDescriptors(granted int) socketLimits {
	if granted == 0 {
		return socketLimits{http: maxHTTPSockets}
	}
	web := max(1, min(maxHTTPSockets, granted/8))
	return socketLimits{clients: max(granted-reservedFiles, granted/2) - web, http: web}
}

// processSocketLimits divides the limit that the system sets.
func processSocketLimits() socketLimits {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > 1<<30 {
		return divideDescriptors(0)
	}
	return divideDescriptors(int(limit.Cur))
}
