//go:build nightly

package torture_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

// flood is many clients that submit jobs, each with 64 in flight, to a broker without workers.
type flood struct {
	b     *harness.Broker
	most  int64 // limit of submitted jobs
	begun atomic.Int64
	taken atomic.Int64
}

const (
	flooders   = 8
	floodAhead = 64
	floodBody  = 1 << 10
	floodPool  = 1 << 20 // bytes of incompressible noise from which bodies are cut
)

// run submits until the limit is reached or a job is refused, and returns the refusals.
func (f *flood) run(t *testing.T) error {
	refusals := make([]error, flooders)
	var all sync.WaitGroup
	for n := range flooders {
		c := harness.DialGearman(t, f.b)
		all.Go(func() { refusals[n] = f.submit(c) }) // ends with the last job, a refusal, or a missing reply
	}
	all.Wait()
	return errors.Join(refusals...)
}

func (f *flood) submit(c *gearmanclient.Client) error {
	noise := make([]byte, floodPool)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	var out []byte
	for f.begun.Add(floodAhead) <= f.most {
		out = out[:0]
		for range floodAhead {
			at := rand.IntN(floodPool - floodBody)
			out = gearmanclient.Append(out, gearmanclient.SubmitJobBg, "flood", "", string(noise[at:at+floodBody]))
		}
		if err := c.Write(out); err != nil {
			return err
		}
		var refusal error
		for range floodAhead {
			p, err := c.Read(harness.Patience)
			if err != nil {
				return err
			}
			if p.Type == gearmanclient.JobCreated {
				f.taken.Add(1)
			} else {
				refusal = fmt.Errorf("refused: %v", p)
			}
		}
		if refusal != nil {
			return refusal
		}
	}
	return nil
}

// TestFloodOfSubmissions submits jobs without workers until the disk has only min_free_disk left.
func TestFloodOfSubmissions(t *testing.T) {
	harness.BrokerOnly(t) // not parallel: it measures memory and time
	// A disk of its own, so that other programs cannot fill it.
	const room, floor = 512 * mib, 256 * mib
	d := harness.NewSmallDisk(t, room+floor)
	b := onDisk(t, d, fmt.Sprintf("min_free_disk = \"%d MiB\"\n", floor/mib))
	p := newProbe(t, b)
	f := &flood{b: b, most: room / floodBody / 4}
	begin := time.Now()
	p.during(fmt.Sprintf("%d jobs of 1 KiB without workers", f.most), 160*mib+400*f.most, func() {
		check(t, f.run(t))
	})
	t.Logf("%.0f jobs per second", float64(f.taken.Load())/time.Since(begin).Seconds())

	f.most = 4 * room / floodBody
	refusal := f.run(t)
	if refusal == nil || !strings.Contains(strings.ToLower(refusal.Error()), "disk") {
		t.Fatalf("after %d jobs: %v", f.taken.Load(), refusal)
	}
	t.Logf("refused after %d jobs", f.taken.Load())
	equal(t, "ready jobs", metric(t, b, `broker_jobs{queue="flood",state="ready"}`), int(f.taken.Load()))
}
