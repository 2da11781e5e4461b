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
	if filepath.Base(os.Args[0]) == "gearmand" {
		os.Exit(gearmandCommand(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}

// say writes to the terminal; when that is gone there is nobody to tell.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
