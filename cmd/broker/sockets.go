package main

import "syscall"

// storeFiles is how many descriptors are kept free of connections: the store fails for good if it cannot open a file.
const storeFiles = 1200

// maxSockets is how many descriptors connections may take of those that the system grants this process; zero: as many as
// they want.
func maxSockets() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > 1<<30 {
		return 0
	}
	granted := int(limit.Cur)
	return max(granted-storeFiles, granted/2)
}
