package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"

	"broker/operate/service"
)

// maxBatch is the maximum number of jobs that a program gets at once.
const maxBatch = 1_000

// loopBatches takes several jobs at a time.
func (w *worker) loopBatches(leasing, running context.Context) error {
	for leasing.Err() == nil {
		leases, err := w.leaseBatch(leasing)
		switch {
		case len(leases) > 0:
			w.taken.Add(int64(len(leases)))
			w.handleBatch(running, leases)
		case leasing.Err() != nil:
		case isFinal(err):
			return err
		case err != nil:
			if err := w.outage.failed(err); err != nil {
				return err
			}
			pause(leasing, retryPause)
		case w.quit:
			return nil
		}
	}
	return nil
}

// leaseBatch waits for jobs.
func (w *worker) leaseBatch(ctx context.Context) ([]service.Lease, error) {
	ask := map[string]any{"queues": w.inTurn(), "max": w.batch, "worker": w.name}
	if !w.quit {
		ask["wait_s"] = leaseWait.Seconds()
	}
	var answer struct{ Leases []service.Lease }
	_, err := w.client.call(ctx, http.MethodPost, "leases", nil, ask, &answer)
	if err == nil {
		w.outage.answered()
	}
	return answer.Leases, err
}

// handleBatch runs the program for several jobs. All of them end in the same way.
func (w *worker) handleBatch(ctx context.Context, leases []service.Lease) {
	cmd := exec.CommandContext(ctx, w.program[0], w.program[1:]...)
	cmd.Env = append(os.Environ(), "BROKER_BATCH="+strconv.Itoa(len(leases)))
	cmd.Stdin = bytes.NewReader(batchLines(leases))
	stderr := tail{limit: maxErrorText}
	log := &lockedWriter{to: w.log} // for both outputs, each copied by its own goroutine
	cmd.Stdout, cmd.Stderr = log, io.MultiWriter(&stderr, log)
	p := newProgram(cmd, w.grace)
	err := p.run(func(done <-chan struct{}) { w.heartbeatBatch(leases, p, done) })
	switch {
	case ctx.Err() != nil:
		w.finishBatch(leases, "release", nil)
	case err == nil:
		w.finishBatch(leases, "complete", nil)
	default:
		w.failed.Add(int64(len(leases)))
		w.finishBatch(leases, "fail", failureOf(err, &stderr))
	}
}

// batchLines are the bodies as JSON: arguments as an array, text as a string, other bytes as {"base64": …}.
func batchLines(leases []service.Lease) []byte {
	var lines bytes.Buffer
	out := json.NewEncoder(&lines)
	out.SetEscapeHTML(false)
	for i := range leases {
		j := &leases[i].Job
		var body any = ""
		switch {
		case j.Args != nil:
			body = j.Args
		case j.BodyBase64 != nil:
			body = map[string][]byte{"base64": j.BodyBase64}
		case j.Body != nil:
			body = *j.Body
		}
		_ = out.Encode(body) // the broker has sent valid JSON, and a buffer takes everything
	}
	return lines.Bytes()
}

// finishBatch reports the end of jobs.
func (w *worker) finishBatch(leases []service.Lease, how string, members map[string]any) {
	_ = w.report(plural(len(leases), "job")+": "+how, func(ctx context.Context) error { // has printed its error
		_, err := w.reportBatch(ctx, leases, how, members)
		return err
	})
}

// reportBatch makes one request about several leases, and prints the leases that the broker has refused. It returns
// whether all other jobs should stop.
func (w *worker) reportBatch(
	ctx context.Context, leases []service.Lease, how string, members map[string]any,
) (stop bool, err error) {
	items := make([]map[string]any, len(leases))
	for i := range leases {
		items[i] = map[string]any{"lease": leases[i].Token}
		maps.Copy(items[i], members)
	}
	var answer struct{ Results []service.LeaseResult }
	if _, err := w.client.call(ctx, http.MethodPost, "leases/"+how, nil, map[string]any{"leases": items},
		&answer); err != nil {
		return false, err
	}
	going := 0
	for i, r := range answer.Results {
		if !r.OK && i < len(leases) {
			w.say("job %s: %s: %s", leases[i].Job.ID, how, r.Code)
		}
		cancelled := r.CancelRequested != nil && *r.CancelRequested
		stop = stop || cancelled
		if r.OK && !cancelled {
			going++
		}
	}
	return stop && going == 0, nil
}

// heartbeatBatch extends the leases while the program runs, and stops the program once all its jobs should stop.
func (w *worker) heartbeatBatch(leases []service.Lease, p *program, done <-chan struct{}) {
	repeat(heartbeats(leases...), done, func(ctx context.Context) {
		stop, err := w.reportBatch(ctx, leases, "heartbeat", nil)
		if err != nil {
			w.say("heartbeat: %v", err)
		}
		if stop {
			p.stop()
		}
	})
}

// lockedWriter is a writer that several goroutines may use.
type lockedWriter struct {
	mu sync.Mutex // guards to
	to io.Writer
}

// Write implements io.Writer.
func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}
