package service

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
)

// keyFixture is a service whose clock and whose number of keys the test sets.
type keyFixture struct {
	*Service
	t      *testing.T
	clock  *coretest.Clock
	engine *engine.Engine
}

func setupKeys(t *testing.T, places int) *keyFixture {
	t.Helper()
	f := &keyFixture{t: t, clock: coretest.NewClock()}
	var err error
	f.engine, err = engine.Open(engine.Options{
		Dir: "data", FS: coretest.MemoryFS(), Clock: f.clock, Seed: 1, ManualTimers: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.engine.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	f.restart(places)
	return f
}

// restart makes a new service, as a restart of the broker and a new leader do.
func (f *keyFixture) restart(places int) {
	f.t.Helper()
	s, err := New(Options{Broker: f.engine})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(s.Close)
	f.Service = s
	pool := access.NewPool(places)
	for _, keys := range s.keys.owned {
		pool.Restore(keys[0].holder, len(keys))
	}
	s.keys.pool = pool
}

// tenant is a caller with a name and a role.
func tenant(t *testing.T, name, role string) Caller {
	t.Helper()
	g, err := access.ParseGrant(role)
	if err != nil {
		t.Fatal(err)
	}
	c := &access.Control{}
	c.Load([]access.Entry{{Name: name, TLSSubject: name, Grants: []access.Grant{g}}})
	return Caller{Principal: c.Default(name)}
}

// submit submits a job under a key and returns its id.
func (f *keyFixture) submit(caller Caller, key string) (string, error) {
	f.t.Helper()
	jobs, err := f.Submit(f.t.Context(), caller, []Submission{{Queue: "q"}}, SubmitOptions{Key: key})
	if err != nil {
		return "", err
	}
	return jobs[0].ID, nil
}

func (f *keyFixture) mustSubmit(caller Caller, key string) string {
	f.t.Helper()
	id, err := f.submit(caller, key)
	if err != nil {
		f.t.Fatalf("key %s: %v", key, err)
	}
	return id
}

// documents counts the stored keys.
func (f *keyFixture) documents() int {
	f.t.Helper()
	r := core.DoOnce(f.engine, core.Internal, &core.ReadDocuments{Tag: 1, Prefix: keyDocs})
	return len(r[0].Documents)
}

func TestKeysOfOtherPrincipalsEvictNoKey(t *testing.T) {
	t.Parallel()
	f := setupKeys(t, 100)
	shop, loud := tenant(t, "shop", "produce"), tenant(t, "loud", "produce")
	first := f.mustSubmit(shop, "order")
	var full *Error
	for i := 0; full == nil; i++ {
		if _, err := f.submit(loud, fmt.Sprint(i)); err != nil && !errors.As(err, &full) {
			t.Fatal(err)
		}
		if i > 50 {
			t.Fatal("one principal takes more than half of the keys")
		}
	}
	if full.Code != CodeTooMany || full.RetryAfter != keyFor {
		t.Errorf("%v, again in %v", full, full.RetryAfter)
	}
	f.clock.Advance(keyFor - time.Second)
	if again := f.mustSubmit(shop, "order"); again != first {
		t.Errorf("within a day the key stands for %s, then for %s", first, again)
	}
	if _, err := f.submit(loud, "more"); !errors.As(err, &full) || full.RetryAfter != time.Second {
		t.Errorf("%v, again in %v", err, full.RetryAfter)
	}
	f.clock.Advance(time.Second)
	if again := f.mustSubmit(shop, "order"); again == first {
		t.Error("after a day the key stands for the same job")
	}
	f.mustSubmit(loud, "more")
	f.mustSubmit(Caller{Principal: access.Everyone}, "order")
}

func TestKeysSurviveARestart(t *testing.T) {
	t.Parallel()
	f := setupKeys(t, 4)
	shop := tenant(t, "shop", "produce")
	first := f.mustSubmit(shop, "order")
	f.clock.Advance(time.Hour)
	f.mustSubmit(shop, "second")
	f.restart(4)
	if again := f.mustSubmit(shop, "order"); again != first {
		t.Errorf("after a restart the key stands for %s, not for %s", again, first)
	}
	_, err := f.submit(shop, "third")
	if full := (*Error)(nil); !errors.As(err, &full) || full.RetryAfter != keyFor-time.Hour {
		t.Errorf("the keys from before the restart do not count for their owner: %v", err)
	}
	if _, err := f.submit(tenant(t, "other", "produce"), "third"); err != nil {
		t.Errorf("another principal: %v", err)
	}
	f.clock.Advance(keyFor)
	f.restart(4)
	f.mustSubmit(shop, "third")
	if n := f.documents(); n != 1 {
		t.Errorf("%d keys are stored, want only the last one", n)
	}
}

// A refused submission frees its key, and the documents of expired keys wait for the next submission.
func TestARefusedSubmissionFreesItsKey(t *testing.T) {
	t.Parallel()
	f := setupKeys(t, 4)
	shop := tenant(t, "shop", "produce")
	f.mustSubmit(shop, "first")
	f.clock.Advance(keyFor)
	for range 10 {
		_, err := f.Submit(t.Context(), shop, []Submission{{Queue: "q", ID: "same"}, {Queue: "q", ID: "same"}},
			SubmitOptions{Key: "refused", Many: true})
		if e := (*Error)(nil); !errors.As(err, &e) || e.Code != CodeDuplicate || e.Field != "jobs[1]" {
			t.Fatalf("%v", err)
		}
	}
	if n := f.documents(); n != 1 {
		t.Errorf("%d keys are stored, want the expired one", n)
	}
	f.mustSubmit(shop, "refused")
	f.mustSubmit(shop, "second")
	if n := f.documents(); n != 2 {
		t.Errorf("%d keys are stored, want 2", n)
	}
}

func TestAThousandJobsMayBeSubmittedUnderOneKey(t *testing.T) {
	t.Parallel()
	f := setupKeys(t, 4)
	jobs := make([]Submission, 1000)
	for i := range jobs {
		jobs[i].Queue = "q"
	}
	if _, err := f.Submit(t.Context(), everyone, jobs, SubmitOptions{Key: "k", Many: true}); err != nil {
		t.Error(err)
	}
}

func TestKeysOfAnEarlierVersionAreKept(t *testing.T) {
	t.Parallel()
	f := setupKeys(t, 4)
	f.mustSubmit(everyone, "order")
	u := f.keys.owned["anonymous"][0]
	id := u.jobID(0)
	entry := core.MetaEntry{Name: earlierMeta + "0007", Value: toJSON(earlierKey{
		Key: fmt.Sprintf("%x", u.hash), Body: fmt.Sprintf("%x", u.body), At: u.at,
	})}
	gone := []core.MetaEntry{{Name: u.docName()}}
	core.DoOnce(f.engine, core.Internal, &core.WriteMeta{Entries: []core.MetaEntry{entry}},
		&core.WriteDocuments{Documents: gone})
	f.restart(4)
	if again := f.mustSubmit(everyone, "order"); again != id {
		t.Errorf("the key of an earlier version stands for %s, not for %s", again, id)
	}
	f.clock.Advance(keyFor)
	f.restart(4)
	r := core.DoOnce(f.engine, core.Internal, &core.ReadMeta{Tag: 1, Name: entry.Name})
	if r[0].Data != nil {
		t.Error("an expired key of an earlier version stays")
	}
}
