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
)

// restoreCommand makes a store from an archive.
func restoreCommand() *cobra.Command {
	from, to, at := &textFlag{kind: "DIR"}, &textFlag{kind: "DATA"}, &textFlag{kind: "TIME"}
	var allow *bool
	cmd := &cobra.Command{
		Use:   "restore --from DIR --to DATA",
		Short: "make a store from an archive, with its newest state or the state at a moment",
		Long: "Make a new store from the archive in DIR: its newest copy of the store, and all commits after it up to the last complete\n" +
			"one or, with --at, up to that moment. Then start a broker with --data DATA.\n\n" +
			"The last line says whether the store is exact: that the archive has every commit up to the moment.\n" +
			"Otherwise it names the gap, and the exit code is 11; --allow-gap accepts the earlier state.",
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
			return restore(cmd, from.text, to.text, at.text, *allow)
		},
	}
	cmd.Flags().Var(from, "from", "folder of the archive")
	cmd.Flags().Var(to, "to", "folder of the new store; it must not exist, or be empty")
	allow = cmd.Flags().Bool("allow-gap", false, "succeed also if the store is of an earlier moment than --at")
	cmd.Flags().Var(at, "at",
		"the moment: RFC 3339, \"2030-01-31 14:05\" in local time, or a duration before now such as 15m")
	return cmd
}

func restore(cmd *cobra.Command, from, to, at string, allowGap bool) error {
	to, err := filepath.Abs(to)
	if err != nil {
		return cli.Failed(err)
	}
	o := archive.RestoreOptions{From: from, To: to}
	if at != "" {
		if o.At, err = parseMoment(cmd, at); err != nil {
			return err
		}
	}
	bar := cli.NewBar(cmd, -1, cli.BarKeys)
	o.Progress = func(entries uint64) { _ = bar.Set64(int64(entries)) }
	r, err := archive.Restore(cmd.Context(), o)
	_ = bar.Finish() // only shows
	if err != nil {
		return archiveError(err)
	}
	for _, n := range r.Notes {
		cli.Say(cmd.ErrOrStderr(), "warning: %s\n", n)
	}
	cli.Say(cmd.OutOrStdout(), "%s is %s", to, stateOf(r))
	if err = printProof(cmd, r, o.At); allowGap {
		return nil
	}
	return err
}

// parseMoment reads the moment of --at or --verify-at.
func parseMoment(cmd *cobra.Command, text string) (core.Instant, error) {
	moment, err := cli.ParsePast(text, time.Now())
	if err != nil {
		return 0, err
	}
	if moment.After(time.Now()) {
		cli.Say(cmd.ErrOrStderr(), "warning: %s is in the future\n", shown(core.InstantOf(moment)))
	}
	return core.InstantOf(moment), nil
}

// archiveError gives an error of an archive its exit code.
func archiveError(err error) error {
	switch {
	case errors.Is(err, os.ErrExist):
		return &cli.ExitError{Code: cli.ExitConflict, Err: err}
	case errors.Is(err, archive.ErrNoArchive), errors.Is(err, archive.ErrTooEarly), errors.Is(err, archive.ErrEmpty):
		return &cli.ExitError{Code: cli.ExitNotFound, Err: err}
	}
	return cli.Failed(err)
}

// stateOf describes a restored state, in two lines.
func stateOf(r *archive.Restored) string {
	return fmt.Sprintf("the store as of %s (commit %d)\nfrom %s and %d commits after it\n",
		shown(r.At), r.Number, r.Base, r.Entries)
}

// printProof says whether a restored state is that of a moment; zero is the newest one. The error has the exit code.
func printProof(cmd *cobra.Command, r *archive.Restored, moment core.Instant) error {
	p := r.Proof
	if p.Exact {
		if moment == 0 {
			cli.Say(cmd.OutOrStdout(), "exact: it is the newest state in the archive\n")
		} else {
			cli.Say(cmd.OutOrStdout(), "exact: it has every commit up to %s\n", shown(moment))
		}
		return nil
	}
	early := ""
	if moment != 0 {
		early = moment.Time().Sub(p.From.Time()).Round(time.Millisecond).String() + " early: "
	}
	if p.To != 0 {
		cli.Say(cmd.ErrOrStderr(), "%sgap from %s to %s, whose commits the archive lacks\n",
			early, shown(p.From), shown(p.To))
	} else {
		cli.Say(cmd.ErrOrStderr(), "%sthe archive ends at %s, and does not show whether there were more commits\n",
			early, shown(p.From))
	}
	return &cli.ExitError{Code: cli.ExitEarly}
}

// shown formats a moment for the archive commands.
func shown(at core.Instant) string { return at.Time().Format("2006-01-02T15:04:05.000000Z") }

// archiveReport is the JSON report about an archive. Its members must not change.
type archiveReport struct {
	Archive string         `json:"archive"`
	Sound   bool           `json:"sound"`
	Bytes   uint64         `json:"bytes"`
	Ranges  []archiveRange `json:"ranges"`
	Gaps    []archiveGap   `json:"gaps,omitempty"`
	Damage  []string       `json:"damage,omitempty"`
}

type archiveGap struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
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
	answer := archiveReport{
		Archive: dir, Sound: len(x.Damage) == 0 && len(x.Ranges) > 0, Bytes: x.Bytes, Ranges: []archiveRange{},
		Damage: x.Damage,
	}
	for _, r := range x.Ranges {
		answer.Ranges = append(answer.Ranges, archiveRange{
			Timeline: r.Timeline, From: r.From.Time(), To: r.To.Time(), BaseCopies: r.Bases, Commits: r.Entries,
		})
	}
	for _, g := range x.Gaps {
		answer.Gaps = append(answer.Gaps, archiveGap{g.From.Time(), g.To.Time()})
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
		cli.Say(out, "%s to %s: %s, %s\n", shown(core.InstantOf(r.From)), shown(core.InstantOf(r.To)),
			counted(uint64(r.BaseCopies), "base copy", "base copies"),
			counted(r.Commits, "commit", "commits"))
	}
	for _, g := range a.Gaps {
		cli.Say(cmd.ErrOrStderr(), "GAP: no moment after %s and before %s can be restored\n",
			shown(core.InstantOf(g.From)), shown(core.InstantOf(g.To)))
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

// verifyArchive proves that a moment can be restored, without a restore.
func verifyArchive(cmd *cobra.Command, dir, at string) error {
	moment, err := parseMoment(cmd, at)
	if err != nil {
		return err
	}
	bar := cli.NewBar(cmd, -1, cli.BarKeys)
	r, err := archive.Verify(cmd.Context(), dir, moment, func(entries uint64) { _ = bar.Set64(int64(entries)) })
	_ = bar.Finish() // only shows
	if err != nil {
		return archiveError(err)
	}
	for _, n := range r.Notes {
		cli.Say(cmd.ErrOrStderr(), "warning: %s\n", n)
	}
	cli.Say(cmd.OutOrStdout(), "a restore gives %s", stateOf(r))
	return printProof(cmd, r, moment)
}

// counted formats a number with its noun.
func counted(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
