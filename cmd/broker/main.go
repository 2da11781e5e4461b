package main

import (
	"os"
	"path/filepath"
)

// version is set by the linker.
var version = "unknown"

func main() {
	if e := emulationOf(filepath.Base(os.Args[0])); e != nil {
		os.Exit(e.run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}
