package main

import (
	"cmp"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"broker/cmd/broker/cli"
	"broker/core/archive"
	"broker/core/explain"
)

// explainCommand shows the decisions about jobs, from an archive.
func explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain JOB…",
		Short: "show the decisions about a job and their reasons, from the archive",
		Long: "List the decisions about a job, and the reasons: the jobs ahead of it, the jobs that ran while it waited, and the limits. Of several\n" +
			"jobs it also shows why each ran before the others. It reads the archive on this machine (archive.dir, or --from), whether the\n" +
			"broker runs or not; the archive of a running broker lacks about the last second.",
		Example: "  broker explain 0198f2c5-8f3a-7000-8000-000000000001\n  broker explain --from /mnt/archive ORDER-1 ORDER-2    # why did ORDER-1 run first?",
		Args:    cobra.MinimumNArgs(1),
	}
	sources, asJSON := settingFlags(cmd), cli.AddJSON(cmd)
	from := &textFlag{kind: "DIR"}
	cmd.Flags().Var(from, "from", "folder of the archive (default: archive.dir)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o := explain.Options{Dir: from.text, Jobs: args}
		if o.Dir == "" || cmd.Flags().Changed("config") {
			c, err := loadSettings(sources())
			if err != nil {
				return err
			}
			if o.Dir = cmp.Or(o.Dir, c.Archive.Dir); o.Dir == "" {
				return cli.UsageError(errors.New("archive.dir is not set: name the archive with --from"))
			}
			o.Limits = c.LimitList()
			o.Sharings = c.SharingList()
		}
		r, err := explain.Jobs(cmd.Context(), o)
		switch {
		case errors.Is(err, explain.ErrUnknown), errors.Is(err, archive.ErrNoArchive):
			return &cli.ExitError{Code: cli.ExitNotFound, Err: err}
		case err != nil:
			return cli.Failed(err)
		case asJSON():
			return cli.PrintValue(cmd, explainedOf(r))
		}
		printExplained(cmd, r)
		return nil
	}
	return cmd
}

// explained is the JSON report of explain. Its members must not change.
type explained struct {
	Jobs  []explainedJob `json:"jobs"`
	Notes []string       `json:"notes,omitempty"`
}

type explainedJob struct {
	Asked  string           `json:"asked"`
	Found  bool             `json:"found"`
	ID     string           `json:"id,omitempty"`
	Queue  string           `json:"queue,omitempty"`
	Type   string           `json:"type,omitempty"`
	Events []explainedEvent `json:"events"`
}

type explainedEvent struct {
	At     time.Time `json:"at"`
	Commit uint64    `json:"commit,omitempty"` // absent: caused by the passing of time
	What   string    `json:"what"`
	Why    []string  `json:"why,omitempty"`
}

func explainedOf(r *explain.Report) explained {
	answer := explained{Jobs: []explainedJob{}, Notes: r.Notes}
	for _, s := range r.Jobs {
		j := explainedJob{
			Asked: s.Asked, Found: s.ID != "", ID: s.ID, Queue: s.Queue, Type: s.Type, Events: []explainedEvent{},
		}
		for _, e := range s.Events {
			j.Events = append(j.Events, explainedEvent{At: e.At.Time(), Commit: e.Commit, What: e.What, Why: e.Why})
		}
		answer.Jobs = append(answer.Jobs, j)
	}
	return answer
}

func printExplained(cmd *cobra.Command, r *explain.Report) {
	out := cmd.OutOrStdout()
	for i, s := range r.Jobs {
		if i > 0 {
			cli.Say(out, "\n")
		}
		if s.ID == "" {
			cli.Say(out, "job %s: the archive does not know it\n", s.Asked)
			continue
		}
		cli.Say(out, "job %s, type %s, queue %s\n", s.ID, s.Type, s.Queue)
		for _, e := range s.Events {
			cli.Say(out, "%s  %s\n", shown(e.At), e.What)
			for _, why := range e.Why {
				cli.Say(out, "    %s\n", why)
			}
		}
	}
	for _, n := range r.Notes {
		cli.Say(cmd.ErrOrStderr(), "warning: %s\n", n)
	}
}
