package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"broker/migrate/importer"
	"broker/operate/service"
)

func importCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import --from " + strings.Join(importServers(), "|") + " SOURCE",
		Short: "move the waiting jobs of another server into this broker",
		Long: "Take the waiting jobs from a running gearmand, Faktory or beanstalkd over its own protocol, and submit them to this broker.\n" +
			"A job is removed at the source only once this broker has acknowledged it: an import that is interrupted or killed loses\n" +
			"nothing, and continues when it is started again. Stop the workers of the source first. Jobs that this broker refuses stay\n" +
			"at the source and are listed. Exit code 9 means that jobs are left; the table says why.\n\n" +
			"gearmand's jobs go to this broker's Gearman port and Faktory's to its Faktory port (--to), beanstalkd's to its HTTP port\n" +
			"(--server). Faktory's protocol shows the jobs in queues only. Scheduled, retrying and dead jobs are in its Redis: name\n" +
			"that as SOURCE, as redis://HOST:PORT or unix:/path/of/db/redis.sock.\n\n" +
			"For TLS, write SOURCE or --to as a URL: tcp+tls://HOST:PORT, or rediss://HOST:PORT for Redis.",
		Example: "  broker import --from gearmand old-host:4730\n" +
			"  broker import --from faktory tcp://:password@old-host:7419\n" +
			"  broker import --from faktory unix:/var/lib/faktory/db/redis.sock\n" +
			"  broker import --from beanstalkd old-host:11300",
		Args: cobra.ExactArgs(1),
	}
	conn, out := addConnection(cmd), addFormat(cmd)
	flags := cmd.Flags()
	from := flags.String("from", "", "what SOURCE is: gearmand, faktory or beanstalkd")
	to := flags.String("to", "",
		"`ADDRESS` of this broker's Gearman or Faktory port (default 127.0.0.1:4730 or 127.0.0.1:7419)")
	leased := flags.Bool("leased", false,
		"from Faktory's Redis: also the jobs that its workers had; Faktory must not run")
	follow := flags.Bool("follow", false, "go on until interrupted, for producers that still submit to the source")
	queues := flags.StringSlice("queues", nil, "move only the jobs of these `QUEUES`, separated by commas")
	dry := flags.Bool("dry-run", false, "say what is at the source, and move nothing")
	resume := flags.Bool("resume-paused", false,
		"over Faktory's protocol: also move paused queues: they are resumed at the source while it hands out jobs; they are paused here")
	skip := flags.String("skip-refused", "",
		"append the jobs that this broker refuses to `FILE`, as lines of JSON, and do not fail because of them")
	_ = cmd.MarkFlagRequired("from") // exists
	_ = cmd.RegisterFlagCompletionFunc("from",
		cobra.FixedCompletions(importServers(), cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		choice := sourceChoice{
			cmd: cmd, conn: conn, from: *from, source: args[0], to: *to, leased: *leased, resume: *resume,
		}
		source, err := choice.open()
		switch {
		case errors.Is(err, importer.ErrNoBroker):
			return &ExitError{Code: ExitUnreachable, Err: err}
		case err != nil:
			return Failed(err)
		}
		defer source.Close()
		source.Only(*queues)
		if *dry {
			report, err := importer.Look(source)
			return errors.Join(printReport(cmd, &report, *out), Failed(err))
		}
		refusals, err := newRefusals(cmd, *skip)
		if err != nil {
			return Failed(err)
		}
		report, err := runImport(cmd, source, importer.Options{
			Follow: *follow, SkipRefused: *skip != "", Refused: refusals.add, Pause: pause,
		})
		err = errors.Join(err, refusals.close())
		switch {
		case errors.Is(err, context.Canceled):
			err = errors.New("interrupted; start it again to go on")
		case errors.Is(err, importer.ErrLeft):
			err = &ExitError{Code: ExitLeft, Err: err}
		}
		return errors.Join(printReport(cmd, &report, *out), Failed(err))
	}
	return cmd
}

// runImport imports until the end or a signal, and shows the progress.
func runImport(cmd *cobra.Command, source importer.Source, o importer.Options) (importer.Report, error) {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	bar := NewBar(cmd, 0, BarJobs)
	o.Progress = func(moved, before int) {
		bar.ChangeMax(max(moved, before, 1))
		_ = bar.Set(moved) // only shows
	}
	start := time.Now()
	report, err := importer.Run(ctx, source, o)
	_ = bar.Finish() // only shows
	if report.Moved > 0 {
		took := time.Since(start)
		Say(cmd.ErrOrStderr(), "%s moved in %v, %s a second\n", plural(report.Moved, "job"),
			took.Round(time.Millisecond),
			count(int(float64(report.Moved)/took.Seconds())))
	}
	return report, err
}

// importServer is a kind of servers whose jobs an import takes.
type importServer struct {
	name, protocol string
	port           string // of this broker for its jobs; empty: they are submitted over HTTP
	open           func(*sourceChoice, importer.Servers) (importer.Source, error)
}

var importServerTable = []importServer{
	{
		name: "gearmand", protocol: "gearman", port: importer.GearmanPort,
		open: func(_ *sourceChoice, s importer.Servers) (importer.Source, error) { return importer.OpenGearman(s) },
	},
	{name: "faktory", protocol: "faktory", port: importer.FaktoryPort, open: (*sourceChoice).openFaktory},
	{name: "beanstalkd", protocol: "beanstalk", open: (*sourceChoice).openBeanstalkd},
}

// importServers are the names of the servers.
func importServers() (names []string) {
	for _, s := range importServerTable {
		names = append(names, s.name)
	}
	return names
}

// importServerOf finds a server by its name or by its protocol; nil: jobs of neither can be imported.
func importServerOf(name string) *importServer {
	for i := range importServerTable {
		if s := &importServerTable[i]; name == s.name || name == s.protocol {
			return s
		}
	}
	return nil
}

func (s *importServer) overHTTP() bool { return s.port == "" }

// sourceChoice says what an import reads from, and where the jobs go.
type sourceChoice struct {
	cmd              *cobra.Command
	conn             *connection
	from, source, to string
	leased, resume   bool
}

// isRedis reports whether the source is the Redis of a Faktory server.
func (c *sourceChoice) isRedis() bool {
	return strings.HasPrefix(c.source, "redis://") || strings.HasPrefix(c.source, "rediss://") ||
		strings.HasPrefix(c.source, "unix:") && strings.HasSuffix(c.source, ".sock")
}

// open connects to a source and to this broker.
func (c *sourceChoice) open() (importer.Source, error) {
	server := importServerOf(c.from)
	switch {
	case server == nil:
		return nil, UsageError(fmt.Errorf("--from: %q is not one of %s", c.from, strings.Join(importServers(), ", ")))
	case c.leased && !(server.name == "faktory" && c.isRedis()):
		return nil, UsageError(errors.New("--leased is for Faktory's Redis only"))
	case c.resume && (server.name != "faktory" || c.isRedis()):
		return nil, UsageError(errors.New(
			"--resume-paused is for Faktory's protocol only: all other imports move paused queues as they are",
		))
	case server.overHTTP() && c.to != "":
		return nil, UsageError(fmt.Errorf("--to: jobs of %s go to the HTTP port; see --server", server.name))
	}
	servers := importer.Servers{Source: c.source, Target: cmp.Or(c.to, "127.0.0.1:"+server.port)}
	var err error
	if servers.TLS, err = c.conn.importTLS(&servers, server.overHTTP()); err != nil {
		return nil, err
	}
	return server.open(c, servers)
}

func (c *sourceChoice) openFaktory(servers importer.Servers) (importer.Source, error) {
	if c.isRedis() {
		return importer.OpenRedis(servers, c.leased)
	}
	return importer.OpenFaktory(servers, c.resume)
}

func (c *sourceChoice) openBeanstalkd(servers importer.Servers) (importer.Source, error) {
	plain := *c.conn
	plain.tls = tlsFiles{} // they may be for SOURCE only
	client, err := plain.open()
	if err == nil && client.base.Scheme == "https" {
		err = client.useTLS(c.conn.tls)
	}
	if err != nil {
		return nil, err
	}
	return importer.OpenBeanstalk(servers, &submitter{client: client, cmd: c.cmd})
}

func printReport(cmd *cobra.Command, r *importer.Report, out format) error {
	if out == formatJSON {
		return PrintValue(cmd, r)
	}
	t := table{header: []string{"QUEUE", "STATE", "-BEFORE", "-MOVED", "-LEFT", "WHY LEFT"}}
	left := func(n int) string {
		if r.LeftUnknown {
			return "?"
		}
		return count(n)
	}
	for _, row := range r.Rows {
		t.add(oneLine(row.Queue, 60), row.State, count(row.Before), count(row.Moved), left(row.Left), row.Reason)
	}
	t.add("total", "", count(r.Before), count(r.Moved), left(r.Left), "")
	if err := t.print(cmd.OutOrStdout()); err != nil {
		return err
	}
	for _, queue := range r.Paused {
		Say(cmd.ErrOrStderr(),
			"queue %s is paused at the source; where its jobs were moved it is paused here: broker resume %s\n", queue,
			queue)
	}
	return nil
}

// mostShown is the maximum number of refused jobs shown.
const mostShown = 20

// refusals shows the jobs that this broker refuses, and keeps them in a file.
type refusals struct {
	cmd   *cobra.Command
	file  *os.File // nil: they are not kept
	count int
}

func newRefusals(cmd *cobra.Command, path string) (*refusals, error) {
	r := &refusals{cmd: cmd}
	if path == "" {
		return r, nil
	}
	var err error
	r.file, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return r, err
}

func (r *refusals) add(j importer.Refused) error {
	r.count++
	switch {
	case r.count <= mostShown:
		Say(r.cmd.ErrOrStderr(), "refused: %s job %s of queue %s: %s\n", j.State, j.ID, j.Queue, oneLine(j.Reason, 200))
	case r.count == mostShown+1:
		Say(r.cmd.ErrOrStderr(), "refused: more jobs; --skip-refused FILE lists all of them\n")
	}
	if r.file == nil {
		return nil
	}
	return json.NewEncoder(r.file).Encode(j)
}

func (r *refusals) close() error {
	if r.file == nil {
		return nil
	}
	return errors.Join(r.file.Sync(), r.file.Close())
}

// submitter implements the importer's Submitter with the HTTP API.
type submitter struct {
	client *client
	cmd    *cobra.Command
}

// Submit implements importer.Submitter. It skips jobs that the broker already has. If a list is refused because of one
// job, it submits the list in halves.
func (s *submitter) Submit(ctx context.Context, jobs []map[string]any) (map[int]string, error) {
	_, err := s.client.call(ctx, http.MethodPost, "jobs", nil, map[string]any{"jobs": jobs}, nil)
	switch {
	case err == nil, len(jobs) == 1 && hasCode(err, "duplicate_id", "not_unique"): // it waits here, or has ended here
		return nil, nil
	case !isRefusal(err):
		return nil, err
	case len(jobs) == 1:
		return map[int]string{0: err.Error()}, nil
	}
	half := len(jobs) / 2
	first, err := s.Submit(ctx, jobs[:half])
	if err != nil {
		return nil, err
	}
	second, err := s.Submit(ctx, jobs[half:])
	refused := make(map[int]string)
	maps.Copy(refused, first)
	for i, reason := range second {
		refused[half+i] = reason
	}
	return refused, err
}

// isRefusal reports whether an error is about the jobs of the request, not about the broker or the caller.
func isRefusal(err error) bool {
	var p *problem
	if !errors.As(err, &p) {
		return false
	}
	switch p.Status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusGone,
		http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// PauseQueue implements importer.Submitter.
func (s *submitter) PauseQueue(ctx context.Context, queue string) error {
	_, err := s.client.call(ctx, http.MethodPatch, "queues/"+url.PathEscape(queue), nil, map[string]any{"paused": true},
		nil)
	return err
}

// Kill implements importer.Submitter.
func (s *submitter) Kill(_ context.Context, ids []string) error {
	var op service.Operation
	raw, err := s.client.call(s.cmd.Context(), http.MethodPost, "job-actions", nil,
		map[string]any{"action": "kill", "ids": ids}, &op)
	if err == nil {
		_, err = s.client.follow(s.cmd, &op, raw)
	}
	if err != nil || op.Skipped == 0 {
		return err
	}
	for _, id := range ids { // skip jobs that an interrupted import has moved already
		var j service.Job
		if _, err := s.client.call(s.cmd.Context(), http.MethodGet, "jobs/"+url.PathEscape(id), nil, nil,
			&j); err != nil {
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
