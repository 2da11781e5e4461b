package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"broker/operate/service"
)

// maxRunWait is the default wait of run, and the longest wait that the API allows.
const maxRunWait = 10 * time.Minute

// waitHintAfter is after how many questions, each after a retryPause, run says why the job has not started.
const waitHintAfter = 2

func runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run QUEUE BODY",
		Short: "submit a job, wait for it and print its result",
		Long: "Submit a job, wait until a worker has finished it, and print its result. Exits with 8 if the job fails.\n" +
			"The job is durable: it runs even if this command is interrupted, unless --ephemeral is given.",
		Example: "  broker run reverse hello\n  broker run reverse - --timeout 10s <file",
		Args:    cobra.ExactArgs(2),
	}
	conn, out, sub := addConnection(cmd), addFormat(cmd), addSubmission(cmd)
	timeout := cmd.Flags().Duration("timeout", maxRunWait, "how long to wait, at most 10m")
	ephemeral := cmd.Flags().Bool("ephemeral", false,
		"withdraw the job when this command ends before a worker has started it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *timeout <= 0 || *timeout > maxRunWait {
			return UsageError(errors.New("--timeout: expected more than 0 and at most 10m"))
		}
		c, err := conn.open()
		if err != nil {
			return err
		}
		body, err := bodyOf(cmd, args[1])
		if err != nil {
			return err
		}
		request, err := sub.job(args[0], body, time.Now())
		if err != nil {
			return err
		}
		if *ephemeral {
			request["ephemeral"] = true
		}
		if request["id"] == nil {
			request["id"] = uuid.Must(uuid.NewV7()).String()
		}
		defer watchJob(cmd, c, fmt.Sprint(request["id"]))()
		var j service.Job
		raw, err := c.submit(cmd.Context(), url.Values{"wait": {timeout.String()}}, request, &j)
		if err != nil {
			return err
		}
		if *out == formatJSON {
			if err := printJSON(cmd.OutOrStdout(), raw); err != nil {
				return err
			}
		}
		return showOutcome(cmd, c, &j, *timeout, *out)
	}
	return cmd
}

// watchJob prints each failure of a job that is retried and, once, why a job has not started after some seconds. It
// returns a function that ends this.
func watchJob(cmd *cobra.Command, c *client, id string) (stop func()) {
	ctx, cancel := context.WithCancel(cmd.Context())
	var running sync.WaitGroup
	running.Go(func() {
		said := false
		for fails, asked := uint32(0), 0; ; asked++ {
			pause(ctx, retryPause)
			var j service.Job
			if _, err := c.call(ctx, http.MethodGet, "jobs/"+url.PathEscape("id:"+id), nil, nil,
				&j); ctx.Err() != nil || isFinal(err) {
				return // the wait is over, or the caller may not read jobs
			}
			if j.Fails > fails && j.State == "retrying" {
				fails = j.Fails
				Say(cmd.ErrOrStderr(), "the job failed%s; its next try is at %s\n", failureText(&j), local(j.RunAt))
			}
			if !said && asked >= waitHintAfter && fails == 0 && j.Wait != nil {
				said = true
				Say(cmd.ErrOrStderr(), "still waiting: %s\n", waitText(&j))
			}
		}
	})
	return func() { cancel(); running.Wait() }
}

// failureText is the last failure of a job in parentheses.
func failureText(j *service.Job) string {
	if j.Failure == nil {
		return ""
	}
	return " (" + oneLine(j.Failure.Message, 200) + ")"
}

// whyWaits says why a job does not run; empty: it runs, or that is not known.
func (c *client) whyWaits(ctx context.Context, j *service.Job) string {
	var now service.Job
	_, err := c.call(ctx, http.MethodGet, "jobs/"+url.PathEscape(j.ID), nil, nil, &now)
	if err != nil || now.Wait == nil {
		return ""
	}
	return waitText(&now)
}

// waitText is the reason of a job that waits, as the end of a line.
func waitText(j *service.Job) string { return oneLine(strings.TrimSuffix(j.Wait.Text, "."), 400) }

// showOutcome prints the result of a job, or returns an error if there is none.
func showOutcome(cmd *cobra.Command, c *client, j *service.Job, waited time.Duration, out format) error {
	o := j.Outcome
	switch {
	case o == nil:
		text := fmt.Sprintf("job %s is %s after %s", j.ID, j.State, span(waited))
		why := c.whyWaits(cmd.Context(), j)
		if j.Fails > 0 {
			text += ", with " + plural(int(j.Fails), "failure") + failureText(j)
			if at := local(j.RunAt); at != "" {
				text, why = text+"; its next try is at "+at, "" // which is what it waits for
			}
		}
		if why != "" {
			text += "; why: " + why
		}
		return Failed(errors.New(text + "; it goes on without this command"))
	case !o.Success:
		text := "job " + j.ID + " failed"
		if o.Cause != "" && o.Cause != "finished" {
			text += " (" + o.Cause + ")"
		}
		if f := o.Failure; f != nil && f.Message != "" {
			text += ": " + f.Message
		}
		return &ExitError{Code: ExitJobFailed, Err: errors.New(text)}
	case out == formatJSON:
		return nil
	}
	result := resultBytes(o)
	if len(result) == 0 {
		Say(cmd.ErrOrStderr(), "done; the worker sent no result\n")
		return nil
	}
	if IsTerminal(cmd.OutOrStdout()) && !bytes.HasSuffix(result, []byte("\n")) {
		result = append(result, '\n') // so that the shell prompt starts on a new line
	}
	_, err := cmd.OutOrStdout().Write(result)
	return Failed(err)
}

func resultBytes(o *service.Outcome) []byte {
	if o.Result != nil {
		return []byte(*o.Result)
	}
	return o.ResultBase64
}
