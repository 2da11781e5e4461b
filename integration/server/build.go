package server

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Root is the project's folder, which contains that of this module.
func Root() (string, error) {
	module, err := moduleFolder()
	return filepath.Dir(module), err
}

// moduleFolder is the folder of this module's go.mod.
func moduleFolder() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Path}} {{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	dir, ok := strings.CutPrefix(strings.TrimSpace(string(out)), "broker/integration ")
	if !ok {
		return "", fmt.Errorf("find the module: not inside the folder integration, but in %q", out)
	}
	return dir, nil
}

// Build compiles a package in a folder of the project, such as "cmd/broker", and returns the program's path.
func Build(folder, dir string, flags ...string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	return goBuild(filepath.Join(root, folder), ".", filepath.Join(dir, filepath.Base(folder)), flags...)
}

// Broker returns the path of the broker: BROKER_BIN, or a program that is built into dir as it is released.
func Broker(dir string) (string, error) {
	if bin := os.Getenv("BROKER_BIN"); bin != "" {
		return filepath.Abs(bin)
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	target := filepath.Join(dir, "broker")
	if out, err := exec.Command(filepath.Join(root, "packaging", "program.sh"), runtime.GOARCH,
		target).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the broker: %w\n%s", err, out)
	}
	return target, nil
}

// The versions of the Faktory server. 1.9 and 1.10 keep their queues in Redis under different names.
const (
	Faktory    = "v1.10.0" // whose version INFO has, and which the tests compare the broker with
	FaktoryOld = "v1.9.3"
)

// BuildFaktory compiles a version of the Faktory server. It is built with that module's go.mod, so that this module
// does not need the server's dependencies.
func BuildFaktory(dir, version string) (string, error) {
	module, err := moduleFolder()
	if err != nil {
		return "", err
	}
	download := exec.Command("go", "mod", "download", "-json", "github.com/contribsys/faktory@"+version)
	download.Dir = module
	out, err := download.Output()
	if err != nil {
		return "", fmt.Errorf("download the Faktory module: %w\n%s", err, out)
	}
	var source struct{ Dir string }
	if err := json.Unmarshal(out, &source); err != nil {
		return "", err
	}
	return goBuild(source.Dir, "./cmd/faktory", filepath.Join(dir, "faktory-"+version))
}

// BuildCollector compiles the program that decodes spans as an OpenTelemetry collector does, a module of its own.
func BuildCollector(dir string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	return goBuild(filepath.Join(root, "integration", "collector"), ".", filepath.Join(dir, "collector"))
}

func goBuild(moduleDir, pkg, target string, flags ...string) (string, error) {
	args := append([]string{"build", "-mod=readonly", "-o", target}, flags...)
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Dir = moduleDir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return target, nil
}
