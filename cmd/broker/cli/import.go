package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"broker/migrate/importer"
)

func importCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import --from gearmand|faktory|beanstalkd SOURCE",
		Short: "move the waiting jobs of another server into this broker",
		Long: "Take the waiting jobs from a running gearmand, Faktory or beanstalkd over its own protocol, and submit them to this broker.\n" +
			"A job is removed at the source only once this broker has acknowledged it: an import that is interrupted or killed loses\n" +
			"nothing, and goes on when it is started again. Stop the workers of the source first.\n\n" +
			"gearmand's jobs go to this broker's Gearman port and Faktory's to its Faktory port (--to), beanstalkd's to its HTTP port\n" +
			"(--server). Faktory's protocol shows the jobs in queues only. Scheduled, retrying and dead jobs come out of its Redis: name\n" +
			"that as SOURCE, as redis://HOST:PORT or unix:/path/of/db/redis.sock.",
		Example: "  broker import --from gearmand old-host:4730\n" +
			"  broker import --from faktory tcp://:password@old-host:7419\n" +
			"  broker import --from faktory unix:/var/lib/faktory/db/redis.sock\n" +
			"  broker import --from beanstalkd old-host:11300",
		Args: cobra.ExactArgs(1),
	}
	conn, out := addConnection(cmd), addFormat(cmd)
	flags := cmd.Flags()
	from := flags.String("from", "", "what SOURCE is: gearmand, faktory or beanstalkd")
	to := flags.String("to", "", "`ADDRESS` of this broker's Gearman or Faktory port (default 127.0.0.1:4730 or 127.0.0.1:7419)")
	leased := flags.Bool("leased", false, "from Faktory's Redis: also the jobs that its workers had; Faktory must not run")
	follow := flags.Bool("follow", false, "go on until interrupted, for producers that still submit to the source")
	_ = cmd.MarkFlagRequired("from") // exists
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions([]string{"gearmand", "faktory", "beanstalkd"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		source, err := openSource(cmd, conn, *from, args[0], *to, *leased)
		if err != nil {
			return Failed(err)
		}
		defer source.Close()
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop) // a second signal ends the program at once
		bar := NewBar(cmd, 0, BarJobs)
		report, err := importer.Run(ctx, source, importer.Options{
			Follow: *follow, Pause: pause,
			Progress: func(moved, before int) {
				bar.ChangeMax(max(moved, before, 1))
				_ = bar.Set(moved) // only shows
			},
		})
		_ = bar.Finish() // only shows
		if errors.Is(err, context.Canceled) {
			err = errors.New("interrupted; start it again to go on")
		}
		return errors.Join(printReport(cmd, &report, *out), Failed(err))
	}
	return cmd
}

// openSource connects to a source and to this broker.
func openSource(cmd *cobra.Command, conn *connection, from, source, to string, leased bool) (importer.Source, error) {
	isRedis := strings.HasPrefix(source, "redis://") || strings.HasPrefix(source, "unix:") && strings.HasSuffix(source, ".sock")
	switch {
	case leased && !(from == "faktory" && isRedis):
		return nil, UsageError(errors.New("--leased is for Faktory's Redis only"))
	case from == "beanstalkd" && to != "":
		return nil, UsageError(errors.New("--to: jobs of beanstalkd go to the HTTP port; see --server"))
	}
	switch from {
	case "gearmand":
		return importer.OpenGearman(source, orLocal(to, importer.GearmanPort))
	case "faktory":
		if isRedis {
			return importer.OpenRedis(source, orLocal(to, importer.FaktoryPort), leased)
		}
		return importer.OpenFaktory(source, orLocal(to, importer.FaktoryPort))
	case "beanstalkd":
		c, err := conn.open()
		if err != nil {
			return nil, err
		}
		return importer.OpenBeanstalk(source, &submitter{client: c, cmd: cmd})
	}
	return nil, UsageError(fmt.Errorf("--from: %q is not one of gearmand, faktory, beanstalkd", from))
}

func orLocal(address, port string) string {
	if address == "" {
		return "127.0.0.1:" + port
	}
	return address
}

func printReport(cmd *cobra.Command, r *importer.Report, out format) error {
	if out == formatJSON {
		return printValue(cmd, r)
	}
	t := table{header: []string{"QUEUE", "STATE", "-BEFORE", "-MOVED", "-LEFT"}}
	for _, row := range r.Rows {
		t.add(oneLine(row.Queue, 60), row.State, count(row.Before), count(row.Moved), count(row.Left))
	}
	t.add("total", "", count(r.Before), count(r.Moved), count(r.Left))
	return t.print(cmd.OutOrStdout())
}

// submitter is the HTTP API as an importer uses it.
type submitter struct {
	client *client
	cmd    *cobra.Command
}

// Submit implements importer.Submitter. Jobs that the broker has already are left out.
func (s *submitter) Submit(ctx context.Context, jobs []map[string]any) error {
	_, err := s.client.call(ctx, http.MethodPost, "jobs", nil, map[string]any{"jobs": jobs}, nil)
	if !hasCode(err, "duplicate_id") {
		return err
	}
	for _, j := range jobs {
		if _, err := s.client.call(ctx, http.MethodPost, "jobs", nil, j, nil); err != nil && !hasCode(err, "duplicate_id") {
			return err
		}
	}
	return nil
}

// Kill implements importer.Submitter.
func (s *submitter) Kill(_ context.Context, ids []string) error {
	var op operation
	raw, err := s.client.call(s.cmd.Context(), http.MethodPost, "job-actions", nil, map[string]any{"action": "kill", "ids": ids}, &op)
	if err == nil {
		_, err = s.client.follow(s.cmd, &op, raw)
	}
	if err != nil || op.Skipped == 0 {
		return err
	}
	for _, id := range ids { // those that an interrupted import has moved there are skipped
		var j job
		if _, err := s.client.call(s.cmd.Context(), http.MethodGet, "jobs/"+url.PathEscape(id), nil, nil, &j); err != nil {
			return err
		}
		if j.State != "dead" {
			return fmt.Errorf("job %s is %s and could not be moved to the dead set", id, j.State)
		}
	}
	return nil
}

// hasCode reports whether an error is a refusal of the API with one of these codes.
func hasCode(err error, codes ...string) bool {
	var p *problem
	return errors.As(err, &p) && slices.Contains(codes, p.Code)
}
