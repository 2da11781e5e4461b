package main

import (
	"fmt"
	"io"
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

// say prints to a terminal; an error cannot be reported anywhere.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
