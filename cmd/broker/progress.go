package main

import (
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"broker/cmd/broker/cli"
)

// copyPoll is the interval at which the progress of a copy is measured.
const copyPoll = 200 * time.Millisecond

// showCopy shows the progress of a backup on a terminal until the returned function is called. It compares the sizes of
// the store and of its unfinished copy. If it cannot read the folders, it shows nothing.
func showCopy(cmd *cobra.Command, store, dir string) (stop func()) {
	bar := cli.NewBar(cmd, folderBytes(store), cli.BarBytes)
	stopped, ended := make(chan struct{}), make(chan struct{})
	go func() { // stop waits for it
		defer close(ended)
		ticks := time.NewTicker(copyPoll)
		defer ticks.Stop()
		for {
			select {
			case <-stopped:
				_ = bar.Finish() // only shows
				return
			case <-ticks.C:
				_ = bar.Set64(min(folderBytes(dir+".unfinished"), bar.GetMax64())) // only shows
			}
		}
	}()
	return func() {
		close(stopped)
		<-ended
	}
}

// folderBytes adds up the sizes of the readable files in a folder.
func folderBytes(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error { // errors are left out
		if err == nil && !entry.IsDir() {
			if info, err := entry.Info(); err == nil {
				sum += info.Size()
			}
		}
		return nil
	})
	return sum
}
