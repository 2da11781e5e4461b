package config

import (
	"path/filepath"
	"strings"
	"time"
)

// Archive ships all commits to a folder.
type Archive struct {
	Dir       string        `toml:"dir" doc:"folder to which all commits are shipped, on another disk or host, so that the store can be restored at any moment (archive.md); one for each broker, or one shared by all nodes of a cluster; empty: no archive"`
	Every     time.Duration `toml:"every" doc:"longest time until a commit is shipped"`
	BaseEvery time.Duration `toml:"base_every" doc:"time between two copies of the whole store; a restore reads one copy and the commits after it"`
	Keep      time.Duration `toml:"keep" doc:"how far back the archive goes; older files are removed"`
	MaxQueue  Size          `toml:"max_queue" doc:"memory for commits that wait while the folder is slow or full; above it, a new copy of the store closes the gap"`
}

func (c *Config) checkArchive(v *checker) {
	a := c.Archive
	v.duration("archive.every", a.Every, 10*time.Millisecond, time.Hour)
	v.duration("archive.base_every", a.BaseEvery, time.Minute, 366*24*time.Hour)
	v.duration("archive.keep", a.Keep, time.Minute, 100*366*24*time.Hour)
	v.size("archive.max_queue", a.MaxQueue, MiB, 64*GiB)
	if a.Dir == "" {
		return
	}
	if c.Durability == "none" {
		v.complain("archive.dir", "requires durability sync or relaxed: with none, nothing is stored")
	}
	dir, errDir := filepath.Abs(a.Dir)
	data, errData := filepath.Abs(c.Data)
	if errDir == nil && errData == nil && (inside(dir, data) || inside(data, dir)) {
		v.complain("archive.dir", "%s and data, %s, must not be in each other", a.Dir, c.Data)
	}
}

// inside reports whether a path is a folder or is inside it.
func inside(path, folder string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
