package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"broker/operate/service"
)

// The wait of one request for a job; the pause when the broker does not answer; the size of the kept output of a
// program.
const (
	leaseWait      = 30 * time.Second
	retryPause     = time.Second
	maxProgramText = 16 << 20
	maxErrorText   = 4 << 10
)

// worker runs a program for every job of some queues.
type worker struct {
	client  *client
	queues  []string
	program []string
	name    string // under which the broker lists it
	log     io.Writer
	outage  outage
	quit    bool // when there is no job
	limit   int64
	grace   time.Duration // from TERM to KILL, for programs that should stop
	batch   int           // number of jobs that the program gets at once; zero: one
	logs    bool          // send the program's output to the log of its job
	taken   atomic.Int64
	failed  atomic.Int64
	turn    atomic.Uint64
}

func workCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "work QUEUE... -- PROGRAM [ARG...]",
		Short: "run a program for every job of some queues",
		Long: "Lease jobs and run a program for each: the job's body on its standard input, its standard output as the result.\n" +
			"Exit code 0 completes the job; any other fails it, with the end of the standard error as the message.\n" +
			"The program finds BROKER_JOB_ID, BROKER_QUEUE, BROKER_TYPE and BROKER_ATTEMPT in its environment, and the job's trace context\n" +
			"in TRACEPARENT and TRACESTATE.\n" +
			"With --log both outputs go to the log of the job too, once a second (broker jobs log ID).\n" +
			"If a job is cancelled with a signal (broker cancel), its program's process group gets TERM, and KILL after --grace.\n" +
			"INT or TERM lets running programs finish; a second signal kills them, and their jobs return to the queue.",
		Example: "  broker work resize -j 4 -- convert - -resize 50% -\n  broker work emails reports -- ./handle.sh",
	}
	conn := addConnection(cmd)
	jobs := cmd.Flags().IntP("jobs", "j", 1, "number of programs that run at the same time")
	limit := cmd.Flags().Int64P("count", "n", 0, "end after this many jobs (0: never)")
	quit := cmd.Flags().Bool("drain", false, "end when no job is ready")
	grace := cmd.Flags().Duration("grace", 10*time.Second, "time between TERM and KILL")
	batch := cmd.Flags().Int("batch", 0, "give the program up to this many jobs at once, each as a line of JSON")
	patience := cmd.Flags().Duration("give-up-after", 5*time.Minute,
		"end when no broker answers, or its store has failed, for this long (0: never)")
	logs := cmd.Flags().Bool("log", false, "write the program's standard output and error to the log of its job")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		at := cmd.ArgsLenAtDash()
		if at < 1 || at == len(args) {
			return errors.New("expected QUEUE... -- PROGRAM")
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *jobs < 1 {
			return UsageError(errors.New("-j: expected 1 or more"))
		}
		if *batch < 0 || *batch > maxBatch || *batch > 0 && *limit > 0 {
			return UsageError(fmt.Errorf("--batch: expected a number up to %d, and no -n", maxBatch))
		}
		if *logs && *batch > 0 {
			return UsageError(errors.New("--log: a program with several jobs (--batch) has no log of its own"))
		}
		c, err := conn.open()
		if err != nil {
			return err
		}
		at := cmd.ArgsLenAtDash()
		program := args[at:]
		if _, err := exec.LookPath(program[0]); err != nil {
			return UsageError(err)
		}
		w := &worker{
			client: c, queues: args[:at], program: program, log: cmd.ErrOrStderr(),
			quit: *quit, limit: *limit, grace: *grace, batch: *batch, logs: *logs, name: ownName(),
		}
		w.outage.say, w.outage.patience = w.say, *patience
		return w.run(cmd.Context(), *jobs)
	}
	return cmd
}

// run works until it is stopped, or with quit until the queues are empty.
func (w *worker) run(ctx context.Context, jobs int) error {
	leasing, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	running, kill := context.WithCancel(ctx)
	defer kill()
	go func() { // ends with running
		<-leasing.Done()
		second := make(chan os.Signal, 1)
		signal.Notify(second, os.Interrupt, syscall.SIGTERM)
		select {
		case <-second:
			kill()
		case <-running.Done():
		}
	}()
	var loops sync.WaitGroup
	errs := make([]error, jobs)
	for i := range jobs {
		loops.Add(1)
		go func() { // run waits for it
			defer loops.Done()
			loop := w.loop
			if w.batch > 0 {
				loop = w.loopBatches
			}
			if errs[i] = loop(leasing, running); errs[i] != nil {
				stop()
			}
		}()
	}
	loops.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if n := w.failed.Load(); n > 0 && (w.quit || w.limit > 0) {
		return &ExitError{
			Code: ExitJobFailed, Err: fmt.Errorf("%d of %s failed", n, plural(int(w.taken.Load()), "job")),
		}
	}
	return nil
}

// loop takes one job after the other.
func (w *worker) loop(leasing, running context.Context) error {
	for leasing.Err() == nil {
		if w.limit > 0 && w.taken.Add(1) > w.limit {
			w.taken.Add(-1)
			return nil
		}
		l, err := w.lease(leasing)
		if w.limit == 0 && l != nil {
			w.taken.Add(1)
		}
		switch {
		case leasing.Err() != nil && l == nil:
			return nil
		case isFinal(err):
			return err
		case err != nil:
			if err := w.outage.failed(err); err != nil {
				return err
			}
			pause(leasing, retryPause)
		case l == nil && w.quit:
			return nil
		case l != nil:
			w.handle(running, l)
			continue
		}
		if w.limit > 0 {
			w.taken.Add(-1) // no job
		}
	}
	return nil
}

// isFinal reports whether a refused lease request would be refused again.
func isFinal(err error) bool { return hasExit(err, ExitUsage, ExitDenied, ExitNotFound) }

// inTurn lists the queues. Each time another queue comes first, so that no queue starves.
func (w *worker) inTurn() []string {
	first := int(w.turn.Add(1) % uint64(len(w.queues)))
	return slices.Concat(w.queues[first:], w.queues[:first])
}

// lease waits for a job from any of the queues.
func (w *worker) lease(ctx context.Context) (*service.Lease, error) {
	query := url.Values{"queue": w.inTurn(), "wait": {leaseWait.String()}}
	if w.quit {
		query.Set("wait", "0s")
	}
	var l service.Lease
	_, err := w.client.call(ctx, http.MethodPost, "lease", query, map[string]any{"worker": w.name}, &l)
	if err == nil {
		w.outage.answered()
	}
	if err != nil || l.Token == "" {
		return nil, err
	}
	return &l, nil
}

// handle runs the program for one job and reports the result. finish prints errors of the report.
func (w *worker) handle(ctx context.Context, l *service.Lease) {
	cmd := exec.CommandContext(ctx, w.program[0], w.program[1:]...)
	cmd.Env = append(os.Environ(), "BROKER_JOB_ID="+l.Job.ID, "BROKER_QUEUE="+l.Job.Queue, "BROKER_TYPE="+l.Job.Type,
		"BROKER_ATTEMPT="+fmt.Sprint(l.Job.Attempts), "TRACEPARENT="+l.Job.Traceparent, "TRACESTATE="+l.Job.Tracestate)
	cmd.Stdin = bytes.NewReader(jobBody(&l.Job))
	var stdout, stderr tail
	stdout.limit, stderr.limit = maxProgramText, maxErrorText
	cmd.Stdout, cmd.Stderr = &stdout, io.MultiWriter(&stderr, w.log)
	p := newProgram(cmd, w.grace)
	sendLog, endLog := w.logging(l, p)
	err := p.run(func(done <-chan struct{}) {
		go sendLog(done) // endLog waits for it
		w.heartbeat(l, p, done)
	})
	endLog()
	switch {
	case ctx.Err() != nil:
		_ = w.finish(l, "release", map[string]any{})
	case err == nil && stdout.cut:
		_ = w.finish(l, "fail",
			map[string]any{"error_class": "result too large", "message": "the program wrote more than 16 MiB"})
	case err == nil:
		w.complete(l, stdout.bytes)
	default:
		w.failed.Add(1)
		_ = w.finish(l, "fail", failureOf(err, &stderr))
	}
}

// failureOf is the failure of a job whose program has ended with an error: the end of its standard error, if there is
// any.
func failureOf(err error, stderr *tail) map[string]any {
	class, message := "program", err.Error()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		class = exit.ProcessState.String()
		message = cmp.Or(strings.TrimSpace(strings.ToValidUTF8(string(stderr.bytes), "�")), message)
	}
	return map[string]any{"error_class": class, "message": message}
}

// complete reports a result. If the broker refuses the result, the job fails.
func (w *worker) complete(l *service.Lease, result []byte) {
	if err := w.finish(l, "complete", resultOf(result)); hasExit(err, ExitUsage) {
		w.failed.Add(1)
		// finish has printed the error
		_ = w.finish(l, "fail", map[string]any{"error_class": "result refused", "message": err.Error()})
	}
}

// finish reports the end of a job. It prints an error and returns it.
func (w *worker) finish(l *service.Lease, how string, body map[string]any) error {
	return w.report("job "+l.Job.ID+": "+how, func(ctx context.Context) error {
		_, err := w.client.call(ctx, http.MethodPost, "leases/"+url.PathEscape(l.Token)+"/"+how, nil, body, nil)
		return err
	})
}

// report sends a report. It retries for a minute, as long as the broker may come back and the worker has not given it
// up. It prints an error and returns it.
func (w *worker) report(what string, send func(context.Context) error) error {
	ctx, cancel := within(context.Background(), time.Minute)
	defer cancel()
	var last error // of an attempt that was not cut off
	for {
		err := send(ctx)
		switch {
		case err == nil:
			w.outage.answered()
			return nil
		case ctx.Err() == nil || last == nil:
			last = err
		}
		if ctx.Err() != nil || isRefused(err) || w.outage.failed(err) != nil {
			w.say("%s: %v", what, last)
			return last
		}
		pause(ctx, retryPause)
	}
}

// heartbeat extends the lease while the program runs, and stops the program if its job should stop.
func (w *worker) heartbeat(l *service.Lease, p *program, done <-chan struct{}) {
	repeat(heartbeats(*l), done, func(ctx context.Context) {
		var state service.LeaseState
		_, err := w.client.call(ctx, http.MethodPost, "leases/"+url.PathEscape(l.Token)+"/heartbeat", nil,
			map[string]any{}, &state)
		switch {
		case err != nil:
			w.say("job %s: heartbeat: %v", l.Job.ID, err)
		case state.CancelRequested:
			p.stop()
		}
	})
}

// repeat calls do again and again until done is closed, with a context that ends before the next call.
func repeat(every time.Duration, done <-chan struct{}, do func(context.Context)) {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticks.C:
			ctx, cancel := within(context.Background(), every)
			do(ctx)
			cancel()
		}
	}
}

// ownName is the name of this process: its host and process id.
func ownName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "work"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

func (w *worker) say(format string, args ...any) { Say(w.log, "broker work: "+format+"\n", args...) }

// jobBody is the program's input: arguments as JSON, anything else unchanged.
func jobBody(j *service.Job) []byte {
	switch {
	case j.Args != nil:
		return j.Args
	case j.Body != nil:
		return []byte(*j.Body)
	}
	return j.BodyBase64
}

func resultOf(b []byte) map[string]any {
	if utf8.Valid(b) {
		return map[string]any{"result": string(b)}
	}
	return map[string]any{"result_base64": base64.StdEncoding.EncodeToString(b)}
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// tail keeps the last bytes of its input.
type tail struct {
	bytes []byte
	limit int
	cut   bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.bytes = append(t.bytes, p...)
	if over := len(t.bytes) - t.limit; over > 0 {
		t.bytes, t.cut = append(t.bytes[:0], t.bytes[over:]...), true
	}
	return len(p), nil
}
