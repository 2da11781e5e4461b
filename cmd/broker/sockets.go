package main

import "syscall"

// storeFiles is how many descriptors are kept free of connections: the store fails for good if it cannot open a file.
const storeFiles = 1200

// webSockets is how many connections the HTTP port may have at once.
const webSockets = 512

// sockets is how many descriptors connections may take.
type sockets struct {
	clients int // 0: as many as they want
	web     int
}

// share divides the descriptors that the system grants this process; 0: it grants as many as anybody wants.
func share(granted int) sockets {
	if granted == 0 {
		return sockets{web: webSockets}
	}
	web := max(1, min(webSockets, granted/16))
	return sockets{clients: max(granted-storeFiles, granted/2) - web, web: web}
}

// grantedSockets asks the system.
func grantedSockets() sockets {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > 1<<30 {
		return share(0)
	}
	return share(int(limit.Cur))
}
