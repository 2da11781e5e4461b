package machine

import (
	"errors"
	"math/rand/v2"
	"testing"

	"broker/core"
)

func TestSlowDiskBoundsUnstoredJobs(t *testing.T) {
	t.Parallel()
	const maxUnstored = 512 << 20 // not as usual
	m := New(Options{
		Persist: true, Await: true, MaxUnstored: maxUnstored, Random: rand.New(rand.NewPCG(1, 1)), StartedAt: 1,
	})
	c := m.OpenClient(0, core.ClientOptions{Protocol: core.Gearman})
	body := make([]byte, 64<<20)
	submit := func() error {
		m.Apply(2, c, []core.Op{&core.Submit{Job: &core.Job{Queue: "q", Body: body, Origin: core.Gearman}}})
		return m.Take(c, nil)[0].Err
	}
	taken := 0
	for ; taken < 100; taken++ {
		if err := submit(); err != nil {
			if !errors.Is(err, core.ErrDiskFull) {
				t.Fatalf("refused with %v", err)
			}
			break
		}
	}
	if want := maxUnstored / len(body); taken < want-1 || taken > want+1 {
		t.Fatalf("%d bodies of 64 MiB taken before the disk had any, want about %d", taken, want)
	}
	var s Sealed
	m.Seal(&s)
	if submit() == nil {
		t.Fatal("taken while the batch is on its way")
	}
	m.Committed(&s)
	if err := submit(); err != nil {
		t.Fatalf("refused after the commit: %v", err)
	}
}

func TestNewOptionsHaveTheDefaultLimitOfUnstoredJobs(t *testing.T) {
	t.Parallel()
	m := New(Options{StartedAt: 1})
	m.SetOptions(Options{Persist: true, StartedAt: 1})
	c := m.OpenClient(0, core.ClientOptions{Protocol: core.Gearman})
	for range 2 {
		m.Apply(2, c, []core.Op{&core.Submit{Job: &core.Job{Queue: "q", Origin: core.Gearman}}})
		if r := m.Take(c, nil)[0]; r.Err != nil {
			t.Fatal(r.Err)
		}
	}
}
