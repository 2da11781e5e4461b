package packages_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"broker/integration/harness"
	"broker/integration/server"
)

// TestImageServes unpacks the image and runs it as a container engine does: its own root, user, environment and health
// check.
func TestImageServes(t *testing.T) {
	harness.NeedRoot(t)
	harness.Need(t, "gearman", "gearadmin")
	dir := t.TempDir()
	program, image := filepath.Join(dir, "broker"), filepath.Join(dir, "image.tar")
	run(t, "packaging/program.sh", "amd64", program)
	run(t, "go", "run", "-C", "packaging", "./image", "-program", program, "-out", image)
	root := filepath.Join(dir, "root")
	run(t, "mkdir", root)
	var manifest []struct{ Layers []string }
	if err := json.Unmarshal([]byte(run(t, "tar", "-xOf", image, "manifest.json")), &manifest); err != nil {
		t.Fatal(err)
	}
	run(t, "sh", "-c", `tar -xOf "$0" "$1" | tar -xzpf - -C "$2"`, image, manifest[0].Layers[0], root)
	run(t, "chmod", "0755", root, dir, filepath.Dir(dir))

	gearman, web := freeAddr(t), freeAddr(t)
	inside := []string{"chroot", "--userspec=65532:65532", root, "/usr/bin/broker"}
	p, err := server.Launch(server.Spec{
		Name: "container", Logs: t.TempDir(), Argv: append(inside, "serve"),
		Env: []string{
			"BROKER_DATA=/var/lib/broker/data", "BROKER_MIN_FREE_DISK=0", "BROKER_WORKQ_LISTEN=off",
			"BROKER_FAKTORY_LISTEN=off",
			"BROKER_GEARMAN_LISTEN=" + gearman, "BROKER_HTTP_LISTEN=" + web,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	waitListening(t, p, gearman)
	host, port := server.Split(gearman)
	run(t, "gearman", "-h", host, "-p", port, "-f", "kept", "-b", "payload")
	if got := run(t, "gearadmin", "-h", host, "-p", port, "--status"); !strings.HasPrefix(got, "kept\t1\t") {
		t.Errorf("status %q", got)
	}
	runWith(t, []string{"BROKER_URL=http://" + web}, append(inside, "healthcheck")...)
	if got := run(t, "stat", "-c", "%u %a", filepath.Join(root, "var/lib/broker/data")); got != "65532 700" {
		t.Errorf("owner and mode of the store: %s", got)
	}
	stop(t, p)
}

func freeAddr(t *testing.T) string {
	t.Helper()
	address, err := server.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return address
}
