package cli

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

// maxRunWait is the default wait of run, and the longest wait that the API allows.
const maxRunWait = 10 * time.Minute

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
	ephemeral := cmd.Flags().Bool("ephemeral", false, "withdraw the job when this command ends before a worker has started it")
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
		var j job
		raw, err := c.submit(cmd.Context(), url.Values{"wait": {timeout.String()}}, request, &j)
		if err != nil {
			return err
		}
		if *out == formatJSON {
			if err := printJSON(cmd.OutOrStdout(), raw); err != nil {
				return err
			}
		}
		return showOutcome(cmd, &j, *timeout, *out)
	}
	return cmd
}

// showOutcome prints the result of a job, or returns an error if there is none.
func showOutcome(cmd *cobra.Command, j *job, waited time.Duration, out format) error {
	o := j.Outcome
	switch {
	case o == nil:
		text := fmt.Sprintf("job %s is %s after %s", j.ID, j.State, span(waited))
		if j.Fails > 0 {
			text += ", with " + plural(j.Fails, "failure")
			if f := j.Failure; f != nil {
				text += " (" + oneLine(f.Message, 200) + ")"
			}
			if at := local(j.RunAt); at != "" {
				text += "; its next try is at " + at
			}
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
	result, err := resultBytes(o)
	if err != nil {
		return Failed(err)
	}
	if len(result) == 0 {
		Say(cmd.ErrOrStderr(), "done; the worker sent no result\n")
		return nil
	}
	if IsTerminal(cmd.OutOrStdout()) && !bytes.HasSuffix(result, []byte("\n")) {
		result = append(result, '\n') // so that the shell prompt starts on a new line
	}
	_, err = cmd.OutOrStdout().Write(result)
	return Failed(err)
}

func resultBytes(o *outcome) ([]byte, error) {
	switch {
	case o.Result != nil:
		return []byte(*o.Result), nil
	case o.ResultBase64 != nil:
		return base64.StdEncoding.DecodeString(*o.ResultBase64)
	}
	return nil, nil
}
