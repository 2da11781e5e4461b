package qless

import (
	"math"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"broker/frontends/frontendtest"
)

// fullJob has a value in every field that is stored.
func fullJob() *job {
	return &job{
		jid: "jid", klass: "K", state: running, queue: "q", worker: "w", data: `{"a":[1]}`, priority: -2.5,
		expires: 1700000060.25,
		retries: 5, remaining: -1, time: 1700000000.25, due: 1e18, hasDue: true, grace: true,
		tags:    []string{"t", "u"},
		history: []entry{{1700000000, "put", `{"q":"q"}`}, {1700000001, "done", ""}},
		failure: &failure{group: "g", message: "m", worker: "w", when: math.Pi}, spawnedFrom: "r",
		dependents: []string{"d"}, dependencies: []string{"e", "f"},
		places:  [jobSets]place{waitingSet: {"q", math.Inf(1), true}, dependsSet: {"p", 0, true}},
		holders: []holder{{"w", 1700000060.25}}, tagged: []tagTime{{"t", 7}}, completed: true, completedAt: 9,
		failedGroup: "g",
		failedAt:    3, foreign: true, hasDocument: true,
		broker: brokerJob{
			seq: 1 << 60, state: running, queue: "n.q", readyAt: never, after: []string{"e"}, worker: "w",
			epoch:  1 << 31,
			leased: true, foreignWorker: true, priority: -3,
		},
	}
}

func TestPackedJobsUnpackUnchanged(t *testing.T) {
	t.Parallel()
	for name, j := range map[string]*job{"full": fullJob(), "empty": {jid: "jid"}} {
		if got := unpack(j.jid, j.pack()); !reflect.DeepEqual(got, j) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, j)
		}
	}
	j := fullJob()
	got, err := decodeJob(j.jid, j.encode())
	if j.broker = (brokerJob{foreignWorker: true}); err != nil || !reflect.DeepEqual(got, j) {
		t.Errorf("its document: %v\n got %+v\nwant %+v", err, got, j)
	}
}

func TestDamagedDocumentsAreErrors(t *testing.T) {
	t.Parallel()
	whole := fullJob().encode()
	for n := range whole {
		if _, err := decodeJob("jid", whole[:n]); err == nil {
			t.Errorf("%d of %d bytes are a job", n, len(whole))
		}
	}
	if _, err := decodeJob("jid", append(whole, 0)); err == nil {
		t.Error("a byte too many is no error")
	}
}

func TestAWaitingJobTakesFewBytes(t *testing.T) {
	t.Parallel()
	s, c := setup(t, frontendtest.InMemory)
	c.call("put", "1700000000.25", "me", "queue", "jid", "module.Klass", `{"user":1}`, "0")
	f := s.Front.(*Frontend)
	if n := len(f.model.jobs.packed["jid"]); n == 0 || n > 150 {
		t.Errorf("a waiting job with 10 bytes of data takes %d bytes", n)
	}
}

func TestCommandsPackTheJobsThatTheyOpen(t *testing.T) {
	t.Parallel()
	s, c := setup(t, frontendtest.InMemory)
	f := s.Front.(*Frontend)
	for i := range 20 {
		c.call("put", "1", "me", "q", strconv.Itoa(i), "K", "{}", "0")
	}
	for _, call := range [][]string{
		{"pop", "2", "q", "w", "20"},
		{"get", "2", "1"},
		{"fail", "3", "1", "w", "g", "m"},
		{"fail", "3", "nobody", "w", "g", "m"},
		{"cancel", "3", "1", "2"},
		{"complete", "4", "3", "w", "q", "{}"},
		{"queues", "5"},
		{"pop", "100", "q", "w", "5"},
	} {
		c.call(call...)
		if n := len(f.model.jobs.open); n > 0 {
			t.Errorf("%q: %d jobs are open", call, n)
		}
	}
	if n := f.model.jobs.len(); n != 18 {
		t.Errorf("%d jobs, want 18", n)
	}
}

func TestUnattachedListsJobsMissingFromTheBroker(t *testing.T) {
	t.Parallel()
	table := newJobTable()
	add := func(jid, state string) {
		table.load(jid, (&job{state: state}).encode())
	}
	for _, jid := range []string{"1", "2", "3"} {
		add(jid, waiting)
	}
	add("done", complete)
	add("held", running)
	for jid, seq := range map[string]uint64{"1": 1, "2": 1 << 40} {
		if !table.attach(jid, &brokerJob{seq: seq, state: waiting, queue: "q", epoch: 1 << 30}) {
			t.Errorf("job %s was not attached", jid)
		}
		if j := table.bySeq(seq); j == nil || j.jid != jid || j.broker.queue != "q" || j.state != waiting {
			t.Errorf("job %d: %+v", seq, j)
		}
	}
	if table.attach("held", &brokerJob{seq: 5, state: running, leased: true}) {
		t.Error("a running job was attached without a look at it")
	}
	table.pack()
	if got := table.unattached(); !slices.Equal(got, []string{"3", "held"}) {
		t.Errorf("the broker lacks %q", got)
	}
}
