package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"broker/cmd/broker/cli"
	"broker/core"
	"broker/core/archive"
	"broker/core/engine"
	"broker/core/shellword"
)

// maxQueueRows is how many queues doctor lists.
const maxQueueRows = 50

// doctorCommand reports the content of a stopped store and any damage. It changes nothing.
func doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor [DIR]",
		Short: "check a stopped store or an archive, and show its content",
		Long: "Read every record of a stopped store, and show its content and any damage. Nothing is changed.\n" +
			"For an archive, read every file and show which moments can be restored;\n" +
			"with --verify-at, prove one moment.\n\n" +
			"With --salvage, copy the readable part of a damaged store to a new one. Jobs whose records are lost are left\n" +
			"out, jobs whose bodies are lost go to the dead set when a worker asks for them. A backup or an archive is better.",
		Example: "  broker doctor /var/lib/broker\n  broker doctor --salvage /var/lib/broker-salvaged /var/lib/broker",
		Args:    cobra.MaximumNArgs(1),
	}
	sources, asJSON := settingFlags(cmd), cli.AddJSON(cmd)
	salvage := cmd.Flags().String("salvage", "",
		"copy the readable part of a damaged store to this folder, which must not exist")
	verifyAt := cmd.Flags().String("verify-at", "", "of an archive: whether restore --at of this `TIME` is exact")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := loadSettings(sources())
		if err != nil {
			return err
		}
		dir := c.Data
		if len(args) == 1 {
			dir = args[0]
		}
		if err := checkFolder(dir); err != nil {
			return err
		}
		switch {
		case archive.IsArchive(dir) && *verifyAt != "":
			return verifyArchive(cmd, dir, *verifyAt)
		case archive.IsArchive(dir):
			return checkArchive(cmd, dir, asJSON())
		case *verifyAt != "":
			return cli.UsageError(fmt.Errorf("--verify-at is for an archive, and %s is none", dir))
		}
		var lost []string
		if *salvage != "" {
			if lost, err = salvageStore(cmd, dir, *salvage); err != nil {
				return err
			}
			dir = *salvage
		}
		bar := cli.NewBar(cmd, -1, cli.BarKeys)
		x, err := engine.Inspect(cmd.Context(), dir, nil, func(keys uint64) { _ = bar.Set64(int64(keys)) })
		_ = bar.Finish() // only shows
		if err := unreadable(err); err != nil {
			return err
		}
		if asJSON() {
			err = printReportJSON(cmd, dir, x, lost)
		} else {
			cli.Say(cmd.OutOrStdout(), "store %s\n", dir)
			printContents(cmd.OutOrStdout(), x)
			err = printFindings(cmd, dir, x, *salvage != "")
			printLost(cmd.OutOrStdout(), lost)
		}
		if err == nil && len(lost) > 0 {
			return &cli.ExitError{Code: cli.ExitDamaged}
		}
		return err
	}
	return cmd
}

// checkFolder refuses a copy that is still packed.
func checkFolder(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return nil // a missing folder is reported by the reader
	}
	return cli.UsageError(
		fmt.Errorf("%s is a file; unpack it: mkdir DIR && tar -xf %s -C DIR && broker doctor DIR", path, path))
}

// salvageStore copies the readable part of a damaged store, and returns what is lost.
func salvageStore(cmd *cobra.Command, from, to string) (lost []string, err error) {
	bar := cli.NewBar(cmd, -1, cli.BarKeys)
	v, err := engine.Salvage(cmd.Context(), from, to, nil, func(keys uint64) { _ = bar.Set64(int64(keys)) })
	_ = bar.Finish() // only shows
	if err == nil {
		err = ownAs(to, from)
	}
	if err := unreadable(err); err != nil {
		return nil, err
	}
	cli.Say(cmd.ErrOrStderr(), "%d jobs copied from %s to %s\n", v.Jobs, from, to)
	return v.Lost, nil
}

// ownAs gives a folder and its files to the owner of another one: the broker that is to use them does not run as root.
func ownAs(to, from string) error {
	info, err := os.Stat(from)
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if !known {
		return nil
	}
	return filepath.WalkDir(to, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, int(owner.Uid), int(owner.Gid)))
	})
}

// printLost says what the new store lacks. It comes last, because the report before is about the new store.
func printLost(w io.Writer, lost []string) {
	for _, what := range lost {
		cli.Say(w, "LOST: %s\n", what)
	}
	if len(lost) > 0 {
		cli.Say(w, "not everything could be copied: the lines above say what the new store lacks\n")
	}
}

// unreadable explains why there is no report of a store.
func unreadable(err error) error {
	switch {
	case engine.IsDamage(err):
		return &cli.ExitError{Code: cli.ExitDamaged, Err: fmt.Errorf("DAMAGED: %w", err)}
	case errors.Is(err, engine.ErrInUse):
		return cli.Failed(fmt.Errorf("%w; stop that broker, or check a copy made with broker backup", err))
	}
	return cli.Failed(err)
}

// printReportJSON prints the report for programs. The exit code shows damage, as without -o json.
func printReportJSON(cmd *cobra.Command, dir string, x *engine.Report, lost []string) error {
	answer := doctorReport{
		Store: dir, Sound: x.Sound(), Bytes: x.Bytes, Bodies: x.Bodies, MetaEntries: x.MetaEntries,
		Documents: x.Documents, Cluster: x.Cluster, Applied: x.Applied,
		Jobs: map[string]int{}, Queues: []doctorQueue{}, Damage: x.Damage, Leftovers: x.Orphans,
		MoreFindings: x.More, Lost: lost,
	}
	for _, s := range core.States {
		if x.Stats != nil && x.Stats.Jobs[s] > 0 {
			answer.Jobs[s.String()] = x.Stats.Jobs[s]
		}
	}
	for i := range x.Queues {
		answer.Queues = append(answer.Queues,
			doctorQueue{Name: x.Queues[i].Name, Jobs: jobsIn(&x.Queues[i]), Paused: x.Queues[i].Paused})
	}
	if x.Inconsistency != nil {
		answer.Inconsistency = x.Inconsistency.Error()
	}
	if err := cli.PrintValue(cmd, answer); err != nil || answer.Sound {
		return err
	}
	return &cli.ExitError{Code: cli.ExitDamaged}
}

// doctorReport is the JSON report. Its members must not change.
type doctorReport struct {
	Store         string         `json:"store"`
	Sound         bool           `json:"sound"`
	Bytes         uint64         `json:"bytes"`
	Bodies        uint64         `json:"bodies"`
	MetaEntries   uint64         `json:"meta_entries"`
	Documents     uint64         `json:"documents"`
	Cluster       string         `json:"cluster,omitempty"` // id of the cluster whose node has the store
	Applied       uint64         `json:"applied,omitempty"` // the last entry of the cluster's log in the store
	Jobs          map[string]int `json:"jobs"`              // by state
	Queues        []doctorQueue  `json:"queues"`
	Damage        []string       `json:"damage,omitempty"`
	Inconsistency string         `json:"inconsistency,omitempty"`
	Leftovers     []string       `json:"leftovers,omitempty"`
	MoreFindings  uint64         `json:"more_findings,omitempty"`
	Lost          []string       `json:"lost,omitempty"` // with --salvage
}

type doctorQueue struct {
	Name   string `json:"name"`
	Jobs   int    `json:"jobs"`
	Paused bool   `json:"paused,omitempty"`
}

// printContents lists the content of the store.
func printContents(w io.Writer, x *engine.Report) {
	cli.Say(w, "%d bytes in records, %d bodies stored separately, %d metadata entries, %d documents\n", x.Bytes,
		x.Bodies, x.MetaEntries, x.Documents)
	if x.Cluster != "" {
		cli.Say(w, "a node of cluster %s, with its log up to entry %d, of %s; the node applies what is newer when it starts\n",
			x.Cluster, x.Applied, x.AppliedAt.Time().UTC().Format(time.RFC3339))
	}
	if x.Stats == nil {
		return
	}
	total := 0
	var parts []string
	for _, s := range core.States {
		if n := x.Stats.Jobs[s]; n > 0 {
			total += n
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	cli.Say(w, "%d jobs in %d queues", total, len(x.Queues))
	if total > 0 {
		cli.Say(w, ": %s", strings.Join(parts, ", "))
	}
	cli.Say(w, "\n")
	if len(x.Queues) == 0 {
		return
	}
	slices.SortStableFunc(x.Queues, func(a, b core.QueueInfo) int { return cmp.Compare(jobsIn(&b), jobsIn(&a)) })
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	cli.Say(table, "ready\tscheduled\tblocked\tleased\tretrying\tdone\tdead\t queue\n")
	for i := range x.Queues[:min(len(x.Queues), maxQueueRows)] {
		q := &x.Queues[i]
		paused := ""
		if q.Paused {
			paused = " (paused)"
		}
		cli.Say(table, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t %s\n", q.Ready(), q.Scheduled, q.Blocked, q.Leased, q.Retrying,
			q.Done, q.Dead,
			q.Name+paused)
	}
	_ = table.Flush() // see cli.Say
	if more := len(x.Queues) - maxQueueRows; more > 0 {
		cli.Say(w, "and %d more queues\n", more)
	}
}

func jobsIn(q *core.QueueInfo) int {
	return q.Ready() + q.Scheduled + q.Blocked + q.Leased + q.Retrying + q.Done + q.Dead
}

// printFindings reports damage of the store in dir. The error contains the exit code.
func printFindings(cmd *cobra.Command, dir string, x *engine.Report, salvaged bool) error {
	stdout, stderr := cmd.OutOrStdout(), cmd.ErrOrStderr()
	for _, o := range x.Orphans {
		cli.Say(stdout, "leftover, harmless: %s\n", o)
	}
	for _, d := range x.Damage {
		cli.Say(stderr, "DAMAGED: %s\n", d)
	}
	if x.Inconsistency != nil {
		cli.Say(stderr, "INCONSISTENT: %v\n", x.Inconsistency)
	}
	if x.More > 0 {
		cli.Say(stderr, "and %d more findings\n", x.More)
	}
	switch {
	case !x.Sound():
		cli.Say(stderr, "%s\n", engine.Remedy(dir))
		return &cli.ExitError{Code: cli.ExitDamaged}
	case salvaged:
		cli.Say(stdout, "the new store can be used: broker serve --data %s\n", shellword.Quote(dir))
	default:
		cli.Say(stdout, "no damage: every record and every body was read, and they are consistent\n")
	}
	return nil
}
