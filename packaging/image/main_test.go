package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// build makes an image around a file that stands for the program.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	program, out := filepath.Join(dir, "broker"), filepath.Join(dir, "image.tar")
	if err := os.WriteFile(program, []byte("the program"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(program, "../container", "arm64", "v1.2.0", out); err != nil {
		t.Fatal(err)
	}
	return out
}

func load(t *testing.T, path string) (v1.Image, *v1.ConfigFile) {
	t.Helper()
	image, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return image, c
}

func TestTwoBuildsAreEqual(t *testing.T) {
	t.Parallel()
	a, err := os.ReadFile(build(t))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(build(t))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Error("the images differ")
	}
}

func TestLayerHoldsTheProgramAndAFolderForTheStore(t *testing.T) {
	t.Parallel()
	image, _ := load(t, build(t))
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v; want one", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	var got []string
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %o %d:%d", h.Name, h.Mode, h.Uid, h.Gid))
	}
	want := []string{
		"etc/ 755 0:0", "etc/group 644 0:0", "etc/passwd 644 0:0", "usr/ 755 0:0", "usr/bin/ 755 0:0",
		"usr/bin/broker 755 0:0",
		"var/ 755 0:0", "var/lib/ 755 0:0", "var/lib/broker/ 700 65532:65532",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the layer has\n%q, want\n%q", got, want)
	}
}

// TestImageIsThatOfTheContainerfile compares the settings of the image with the instructions of the last stage.
func TestImageIsThatOfTheContainerfile(t *testing.T) {
	t.Parallel()
	_, file := load(t, build(t))
	if file.OS != "linux" || file.Architecture != "arm64" ||
		file.Config.Labels["org.opencontainers.image.version"] != "v1.2.0" {
		t.Errorf("platform %s/%s, labels %v", file.OS, file.Architecture, file.Config.Labels)
	}
	text, err := os.ReadFile("../container/Containerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, found := strings.Cut(string(text), "\nFROM scratch\n")
	if !found {
		t.Fatal("the last stage is not empty")
	}
	c := file.Config
	want := map[string]string{
		"COPY": "--from=build /root-fs /", "USER": c.User, "ENV": strings.Join(c.Env, " "), "STOPSIGNAL": c.StopSignal,
		"VOLUME": strings.Join(slices.Sorted(maps.Keys(c.Volumes)), " "), "ENTRYPOINT": list(t, c.Entrypoint),
		"CMD": list(t, c.Cmd),
		"HEALTHCHECK": fmt.Sprintf("--interval=%s --timeout=%s --start-period=%s --retries=%d CMD %s",
			seconds(c.Healthcheck.Interval),
			seconds(c.Healthcheck.Timeout), seconds(c.Healthcheck.StartPeriod), c.Healthcheck.Retries,
			list(t, c.Healthcheck.Test[1:])),
	}
	for line := range strings.Lines(last) {
		instruction, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if instruction == "EXPOSE" {
			ports := strings.Fields(value)
			slices.Sort(ports)
			if exposed := slices.Sorted(maps.Keys(c.ExposedPorts)); !slices.Equal(ports, exposed) {
				t.Errorf("EXPOSE %q, the image has %q", ports, exposed)
			}
			continue
		}
		if wanted, ok := want[instruction]; !ok || value != wanted {
			t.Errorf("%s %s, the image has %s", instruction, value, wanted)
		}
		delete(want, instruction)
	}
	if len(want) > 0 {
		t.Errorf("the Containerfile lacks %v", want)
	}
}

func list(t *testing.T, words []string) string {
	t.Helper()
	b, err := json.Marshal(words)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b), `","`, `", "`)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%ds", int(d.Seconds())) }
