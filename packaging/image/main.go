// Program image builds the container image of the broker without a container engine: the image that
// packaging/container/Containerfile describes, as a tar file for docker load.
//
//	go run -C packaging ./image -program FILE -arch ARCH -version V -out FILE
package main

import (
	"archive/tar"
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// uid is the user of the process, without a name on most hosts.
const uid = 65532

func main() {
	program := flag.String("program", "", "the static program")
	arch := flag.String("arch", "amd64", "its architecture")
	version := flag.String("version", "unknown", "its version")
	sources := flag.String("sources", "container", "folder with passwd and group")
	out := flag.String("out", "", "the tar file to write")
	flag.Parse()
	if err := run(*program, *sources, *arch, *version, *out); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(program, sources, arch, version, out string) error {
	created, err := buildTime()
	if err != nil {
		return err
	}
	layer, err := fileSystem(program, sources, created)
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return err
	}
	image, err = mutate.ConfigFile(image, configure(image, arch, version, created))
	if err != nil {
		return err
	}
	tag, err := name.NewTag("broker:latest")
	if err != nil {
		return err
	}
	return tarball.WriteToFile(out, tag, image)
}

// buildTime is the time that files and image bear: SOURCE_DATE_EPOCH, so that two builds are equal.
func buildTime() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// configure returns the settings of the image: those of the Containerfile.
func configure(image v1.Image, arch, version string, created time.Time) *v1.ConfigFile {
	c, err := image.ConfigFile()
	if err != nil {
		panic(err) // the image was just built
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Created = "linux", arch, v1.Time{Time: created}
	c.History = []v1.History{{Created: v1.Time{Time: created}, CreatedBy: "packaging/image"}}
	c.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", uid, uid),
		Env: []string{
			"BROKER_DATA=/var/lib/broker/data", "BROKER_WORKQ_LISTEN=0.0.0.0:9922",
			"BROKER_GEARMAN_LISTEN=0.0.0.0:4730", "BROKER_FAKTORY_LISTEN=0.0.0.0:7419",
		},
		ExposedPorts: map[string]struct{}{"9922/tcp": {}, "4730/tcp": {}, "7419/tcp": {}, "7420/tcp": {}},
		Volumes:      map[string]struct{}{"/var/lib/broker": {}},
		StopSignal:   "SIGTERM",
		Healthcheck: &v1.HealthConfig{
			Test:     []string{"CMD", "/usr/bin/broker", "healthcheck"},
			Interval: 10 * time.Second, Timeout: 5 * time.Second, StartPeriod: time.Minute, Retries: 3,
		},
		Entrypoint: []string{"/usr/bin/broker"},
		Cmd:        []string{"serve"},
		Labels: map[string]string{
			"org.opencontainers.image.title": "broker", "org.opencontainers.image.version": version,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return c
}

// fileSystem is the only layer.
func fileSystem(program, sources string, created time.Time) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range []struct {
		path, source string // without a source it is a folder
		mode         int64
		owner        int
	}{
		{"etc/", "", 0o755, 0},
		{"etc/group", filepath.Join(sources, "group"), 0o644, 0},
		{"etc/passwd", filepath.Join(sources, "passwd"), 0o644, 0},
		{"usr/", "", 0o755, 0},
		{"usr/bin/", "", 0o755, 0},
		{"usr/bin/broker", program, 0o755, 0},
		{"var/", "", 0o755, 0},
		{"var/lib/", "", 0o755, 0},
		{"var/lib/broker/", "", 0o700, uid},
	} {
		h := &tar.Header{
			Name: e.path, Mode: e.mode, Uid: e.owner, Gid: e.owner, ModTime: created, Typeflag: tar.TypeDir,
		}
		var content []byte
		if e.source != "" {
			var err error
			if content, err = os.ReadFile(e.source); err != nil {
				return nil, err
			}
			h.Typeflag, h.Size = tar.TypeReg, int64(len(content))
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(b.Bytes())), nil
	})
}
