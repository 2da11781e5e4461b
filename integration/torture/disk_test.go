package torture_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	faktory "github.com/contribsys/faktory/client"
	"github.com/google/uuid"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/workqclient"
)

const mib = 1 << 20

// onDisk starts a broker whose store is on a small disk.
func onDisk(t *testing.T, d *harness.SmallDisk, config string) *harness.Broker {
	t.Helper()
	b := harness.Prepare(t, harness.Options{Config: config})
	b.Data = filepath.Join(d.Dir, "data")
	b.Restart()
	return b
}

// bigJob is a job with a large body.
func bigJob(k *ledger, n int) (workqclient.Job, *record) {
	r := k.submitting(fmt.Sprintf("big-%d", n), uuid.NewString())
	noise := make([]byte, 60<<10) // incompressible
	for i := 0; i < len(noise); i += 8 {
		binary.LittleEndian.PutUint64(noise[i:], rand.Uint64())
	}
	body := append([]byte(r.body+" "), noise...)
	return workqclient.Job{
		ID: r.id, Name: waiting, TTR: time.Minute, TTL: time.Hour, Wait: harness.Patience, Body: body,
	}, r
}

// fill adds jobs until one is refused, and returns how many were accepted and the refusal.
func fill(t *testing.T, b *harness.Broker, k *ledger, most int) (taken int, refusal error) {
	t.Helper()
	c := harness.DialWorkq(t, b)
	for taken < most {
		job, r := bigJob(k, len(k.jobs))
		if err := c.Add(job); err != nil {
			return taken, err
		}
		k.acked(r, "")
		taken++
	}
	return taken, nil
}

// drainBig leases and deletes all jobs: completed Workq jobs would be kept with their results.
func drainBig(t *testing.T, b *harness.Broker, k *ledger) (n int) {
	t.Helper()
	c := harness.DialWorkq(t, b)
	for ; ; n++ {
		l, err := c.Lease(0, waiting)
		if errors.Is(err, workqclient.ErrTimeout) {
			return n
		}
		check(t, err)
		name, _, _ := strings.Cut(string(l.Body), " ")
		r := k.handedOut(name)
		k.ending(r)
		check(t, c.Delete(l.ID))
		k.ended(r)
	}
}

func TestNearlyFullDiskRefusesJobsAndTakesResults(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	d := harness.NewSmallDisk(t, 192*mib)
	b := onDisk(t, d, "min_free_disk = \"48 MiB\"\n")
	k := newLedger(t)
	k.started()
	// The free space is checked once a second: what is written meanwhile must fit into min_free_disk.
	var refusal error
	taken := 0
	for begin := time.Now(); refusal == nil && time.Since(begin) < harness.Patience; {
		var n int
		n, refusal = fill(t, b, k, 50)
		taken += n
		time.Sleep(200 * time.Millisecond)
	}
	if refusal == nil || !strings.Contains(refusal.Error(), "Disk full") {
		t.Fatalf("after %d jobs: %v", taken, refusal)
	}
	t.Logf("%d jobs of 60 KiB on a disk of 192 MiB with min_free_disk 48 MiB, %d MiB free: %v", taken, d.Free()/mib,
		refusal)
	awaitDiskLow(t, b, 1)
	status, body, err := b.Get("/healthz")
	check(t, err)
	equal(t, "health", fmt.Sprint(status, strings.Contains(body, "disk nearly full")), fmt.Sprint(http.StatusOK, true))
	gearman, fkt := wantRefusals(t, b, "disk", "disk is nearly full")
	equal(t, "jobs worked on while new ones are refused", drainBig(t, b, k), taken)
	harness.Eventually(t, func() string {
		if n, err := fill(t, b, k, 1); n == 0 {
			return fmt.Sprintf("still refused with %d MiB free: %v", d.Free()/mib, err)
		}
		return ""
	})
	_, err = gearman.Submit(gearmanclient.SubmitJobBg, "again", "", "x")
	check(t, err)
	job := faktory.NewJob("again", "x")
	check(t, fkt.Push(job))
	awaitDiskLow(t, b, 0)
	_, body, err = b.Get("/healthz")
	check(t, err)
	equal(t, "health", body, `{"status":"ok"}`)
}

// awaitDiskLow waits until the broker has measured the disk, which it does beside its other work, and has said so.
func awaitDiskLow(t *testing.T, b *harness.Broker, want int) {
	t.Helper()
	harness.Eventually(t, func() string {
		if got := metric(t, b, "broker_disk_low"); got != want {
			return fmt.Sprint("broker_disk_low is ", got)
		}
		return ""
	})
}

// wantRefusals submits a job by Gearman and by Faktory; both must be refused.
func wantRefusals(
	t *testing.T, b *harness.Broker, gearmanWords, faktoryWords string,
) (*gearmanclient.Client, *faktory.Client) {
	t.Helper()
	gearman := harness.DialGearman(t, b)
	check(t, gearman.Send(gearmanclient.SubmitJobBg, "refused", "", "x"))
	p, err := gearman.Expect(gearmanclient.Error, harness.Patience)
	check(t, err)
	if !strings.Contains(strings.ToLower(string(p.Data)), gearmanWords) {
		t.Errorf("gearman: %q", p.Data)
	}
	fkt, err := harness.OpenFaktory(b, harness.Patience)
	check(t, err)
	t.Cleanup(func() { _ = fkt.Close() }) // the broker may be gone
	if err := fkt.Push(faktory.NewJob("refused", "x")); err == nil || !strings.Contains(err.Error(), faktoryWords) {
		t.Errorf("faktory: %v", err)
	}
	return gearman, fkt
}

func TestFullDiskStopsTheBrokerAndLosesNothing(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	d := harness.NewSmallDisk(t, 64*mib)
	b := onDisk(t, d, "min_free_disk = 0\n")
	k := newLedger(t)
	k.started()
	taken, refusal := fill(t, b, k, 10_000)
	if refusal == nil || !strings.Contains(refusal.Error(), "-SERVER-ERROR") {
		t.Fatalf("after %d jobs: %v", taken, refusal)
	}
	t.Logf("%d jobs of 60 KiB on a disk of 64 MiB: %v", taken, refusal)
	// Reads still work; nothing is acknowledged any more.
	harness.Eventually(t, func() string {
		status, body, err := b.Get("/healthz")
		if err != nil || status != http.StatusServiceUnavailable || !strings.Contains(body, "store failed") {
			return fmt.Sprint("health: ", status, body, err)
		}
		if !strings.Contains(b.Output(), "no space left on device") {
			return "the log does not name the reason"
		}
		return ""
	})
	gearman, _ := wantRefusals(t, b, "server has stopped", "storage has failed")
	_, err := gearman.AdminList("status")
	check(t, err)
	if _, err := harness.DialWorkq(t, b).Lease(0, waiting); err == nil ||
		!strings.Contains(err.Error(), "-SERVER-ERROR") {
		t.Errorf("a job was handed out: %v", err)
	}
	code, took := b.Terminate()
	t.Logf("exit code %d after %v", code, took)
	harness.CheckDuration(t, "the shutdown", took, 5*time.Second)
	d.Resize(256 * mib)
	b.Restart()
	k.started()
	if got := drainBig(t, b, k); got != taken && got != taken+1 { // the refused one may be there
		t.Errorf("%d of %d jobs were recovered", got, taken)
	}
	k.checkLost(b)
}

func TestReadOnlyDataFolderIsRefused(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	d := harness.NewSmallDisk(t, 64*mib)
	b := onDisk(t, d, "min_free_disk = 0\n")
	b.Terminate()
	d.ReadOnly()
	check(t, b.Spawn())
	code, err := b.Wait(harness.Patience)
	check(t, err)
	equal(t, "exit code", code, 1)
	if out := b.Tail(); !strings.Contains(out, "read-only file system") || !strings.Contains(out, b.Data) {
		t.Errorf("the message does not name the error and the folder: %s", out)
	}
}

// Other programs may fill the disk too. The jobs that wait must then not be out of reach.
func TestBrokerStartsAndDrainsOnAFullDisk(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	d := harness.NewSmallDisk(t, 448*mib)
	b := onDisk(t, d, "min_free_disk = \"160 MiB\"\n")
	k := newLedger(t)
	k.started()
	taken, refusal := fill(t, b, k, 400)
	check(t, refusal)
	b.Crash() // its log is to be read again
	filler, err := os.Create(filepath.Join(d.Dir, "filler"))
	check(t, err)
	for block := make([]byte, 64<<10); err == nil; {
		_, err = filler.Write(block)
	}
	check(t, filler.Close())
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	b.Restart()
	k.started()
	awaitDiskLow(t, b, 1)
	wantRefusals(t, b, "disk", "disk is nearly full")
	equal(t, "jobs worked on", drainBig(t, b, k), taken)
	k.checkLost(b)
}
