package main

import (
	"os"
	"path/filepath"
)

// version is set by the linker.
var version = "unknown"

func main() {
	switch filepath.Base(os.Args[0]) {
	case "gearmand":
		os.Exit(gearmandCommand(os.Args[1:], os.Stdout, os.Stderr))
	case "beanstalkd":
		os.Exit(beanstalkdCommand(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}
