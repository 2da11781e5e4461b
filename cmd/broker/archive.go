package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"broker/cmd/broker/cli"
	"broker/core"
	"broker/core/archive"
	"broker/core/engine"
)

// scratchFolder is the folder for copies of the store for the archive. It is inside the data folder, which is writable and on
// the same file system as the store.
const scratchFolder = "archiving"

// newArchive makes the writer that ships the commits of an engine; nil: no archive.
func (t *term) newArchive() engine.Shipper {
	a := t.config.Archive
	scratch := filepath.Join(t.config.Data, scratchFolder)
	if a.Dir == "" {
		_ = os.RemoveAll(scratch) // an earlier run may have left a copy
		return nil
	}
	t.archive = archive.New(archive.Options{
		Dir: a.Dir, Scratch: scratch,
		Every: a.Every, BaseEvery: a.BaseEvery, Keep: a.Keep, MaxQueueBytes: int(a.MaxQueue),
		Clock: processClock(), Log: nodeLog(t.log),
	})
	return t.archive
}

// archiveStatus is the state of the archive; nil: no archive.
func (t *term) archiveStatus() *core.Archive {
	if t.archive == nil {
		return nil
	}
	s := t.archive.Status()
	return &s
}

// restoreCommand makes a store from an archive.
func restoreCommand() *cobra.Command {
	from, to, at := &textFlag{kind: "DIR"}, &textFlag{kind: "DATA"}, &textFlag{kind: "TIME"}
	cmd := &cobra.Command{
		Use:   "restore --from DIR --to DATA",
		Short: "make a store from an archive, with its newest state or the state at a moment",
		Long: "Make a new store from the archive in DIR: its newest copy of the store, and all commits after it up to the last complete\n" +
			"one or, with --at, up to that moment. Then start a broker with --data DATA.",
		Example: "  broker restore --from /mnt/archive --to /var/lib/broker-restored\n" +
			"  broker restore --from /mnt/archive --at '2030-01-31 14:05' --to /var/lib/broker-restored",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case from.text == "" || to.text == "":
				return cli.UsageError(errors.New("--from and --to are required"))
			case at.text == "" && cmd.Flags().Changed("at"):
				return cli.UsageError(errors.New("--at is empty"))
			}
			return restore(cmd, from.text, to.text, at.text)
		},
	}
	cmd.Flags().Var(from, "from", "folder of the archive")
	cmd.Flags().Var(to, "to", "folder of the new store; it must not exist, or be empty")
	cmd.Flags().Var(at, "at", "the moment: RFC 3339, \"2030-01-31 14:05\" in local time, or a duration before now such as 15m")
	return cmd
}

func restore(cmd *cobra.Command, from, to, at string) error {
	to, err := filepath.Abs(to)
	if err != nil {
		return cli.Failed(err)
	}
	o := archive.RestoreOptions{From: from, To: to}
	if at != "" {
		moment, err := cli.ParsePast(at, time.Now())
		if err != nil {
			return err
		}
		if moment.After(time.Now()) {
			cli.Say(cmd.ErrOrStderr(), "warning: %s is in the future\n", shown(core.InstantOf(moment)))
		}
		o.At = core.InstantOf(moment)
	}
	bar := cli.NewBar(cmd, -1, cli.BarKeys)
	o.Progress = func(entries uint64) { _ = bar.Set64(int64(entries)) }
	r, err := archive.Restore(cmd.Context(), o)
	_ = bar.Finish() // only shows
	switch {
	case errors.Is(err, os.ErrExist):
		return &cli.ExitError{Code: cli.ExitConflict, Err: err}
	case errors.Is(err, archive.ErrNoArchive), errors.Is(err, archive.ErrTooEarly), errors.Is(err, archive.ErrEmpty):
		return &cli.ExitError{Code: cli.ExitNotFound, Err: err}
	case err != nil:
		return cli.Failed(err)
	}
	for _, n := range r.Notes {
		cli.Say(cmd.ErrOrStderr(), "warning: %s\n", n)
	}
	cli.Say(cmd.OutOrStdout(), "%s is the store as of %s (commit %d)\nfrom %s and %d commits after it\n", to, shown(r.At), r.Number, r.Base, r.Entries)
	return nil
}

// shown formats a moment for the archive commands.
func shown(at core.Instant) string { return at.Time().Format("2006-01-02T15:04:05.000000Z") }

// archiveReport is the JSON report about an archive. Its members must not change.
type archiveReport struct {
	Archive string         `json:"archive"`
	Sound   bool           `json:"sound"`
	Bytes   uint64         `json:"bytes"`
	Ranges  []archiveRange `json:"ranges"`
	Damage  []string       `json:"damage,omitempty"`
}

type archiveRange struct {
	Timeline   string    `json:"timeline"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	BaseCopies int       `json:"base_copies"`
	Commits    uint64    `json:"commits"`
}

// checkArchive runs doctor on an archive.
func checkArchive(cmd *cobra.Command, dir string, asJSON bool) error {
	bar := cli.NewBar(cmd, -1, cli.BarKeys)
	x, err := archive.Check(cmd.Context(), dir, func(entries uint64) { _ = bar.Set64(int64(entries)) })
	_ = bar.Finish() // only shows
	if err != nil {
		return cli.Failed(err)
	}
	answer := archiveReport{Archive: dir, Sound: len(x.Damage) == 0 && len(x.Ranges) > 0, Bytes: x.Bytes, Ranges: []archiveRange{}, Damage: x.Damage}
	for _, r := range x.Ranges {
		answer.Ranges = append(answer.Ranges, archiveRange{
			Timeline: r.Timeline, From: r.From.Time(), To: r.To.Time(), BaseCopies: r.Bases, Commits: r.Entries,
		})
	}
	if asJSON {
		err = cli.PrintValue(cmd, answer)
	} else {
		printArchive(cmd, &answer)
	}
	if err != nil || answer.Sound {
		return err
	}
	return &cli.ExitError{Code: cli.ExitDamaged}
}

func printArchive(cmd *cobra.Command, a *archiveReport) {
	out := cmd.OutOrStdout()
	cli.Say(out, "archive %s\n%d bytes\n", a.Archive, a.Bytes)
	for _, r := range a.Ranges {
		cli.Say(out, "%s to %s: %s, %s\n", shown(core.InstantOf(r.From)), shown(core.InstantOf(r.To)), counted(uint64(r.BaseCopies), "base copy", "base copies"),
			counted(r.Commits, "commit", "commits"))
	}
	for _, d := range a.Damage {
		cli.Say(cmd.ErrOrStderr(), "DAMAGED: %s\n", d)
	}
	switch {
	case len(a.Ranges) == 0:
		cli.Say(cmd.ErrOrStderr(), "nothing can be restored: there is no base copy that is whole\n")
	case a.Sound:
		cli.Say(out, "no damage: every file was read, and every moment of these times can be restored\n")
	}
}

// counted formats a number with its noun.
func counted(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
