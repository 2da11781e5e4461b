package cli

import (
	"testing"

	"broker/operate/service"
)

func TestClusterStatusShowsTheDisk(t *testing.T) {
	t.Parallel()
	for want, n := range map[string]service.ClusterNode{
		"-":             {},
		"0.8ms":         {WriteTime: 0.0008},
		"slow, 120.4ms": {WriteTime: 0.12041, DiskSlow: true},
		"slow, -":       {DiskSlow: true},
	} {
		if got := diskText(&n); got != want {
			t.Errorf("%+v is shown as %q, want %q", n, got, want)
		}
	}
}
