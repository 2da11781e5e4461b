package server

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ModuleRoot is the folder of this module's go.mod.
func ModuleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if mod == "" || mod == os.DevNull {
		return "", fmt.Errorf("not inside the module")
	}
	return filepath.Dir(mod), nil
}

// Build compiles a package of this module, such as "./cmd/broker", and returns the program's path.
func Build(pkg, dir string, flags ...string) (string, error) {
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	return goBuild(root, pkg, filepath.Join(dir, filepath.Base(pkg)), flags...)
}

// Broker returns the path of the broker: BROKER_BIN, or a program built into dir.
func Broker(dir string) (string, error) {
	if bin := os.Getenv("BROKER_BIN"); bin != "" {
		return filepath.Abs(bin)
	}
	return Build("./cmd/broker", dir)
}

// BuildFaktory compiles the Faktory server from the module that contains its client. It is built with that module's go.mod,
// so that this module does not need the server's dependencies.
func BuildFaktory(dir string) (string, error) {
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/contribsys/faktory")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("find the Faktory module: %w", err)
	}
	return goBuild(strings.TrimSpace(string(out)), "./cmd/faktory", filepath.Join(dir, "faktory"))
}

// BuildCollector compiles the program that decodes spans as an OpenTelemetry collector does, a module of its own.
func BuildCollector(dir string) (string, error) {
	root, err := ModuleRoot()
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
