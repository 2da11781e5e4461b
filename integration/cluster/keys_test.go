package cluster_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/server"
)

// Submissions that join a waiting job of the same key. Gearman's clients submit, workers of Faktory take and
// acknowledge the end. An acknowledged submission promises that a job of its key ends after it was sent.

const (
	keys      = 12     // few, so that submissions join jobs
	keysQueue = "keys" // Gearman's function
)

// keyOperation is one operation on the jobs of a key, which exist one after the other.
type keyOperation struct {
	kind     keyKind
	key, jid string // jid: of the job that was leased or finished
	acked    bool
	client   int
	from, to time.Time

	mayBeLost bool // see markLost
}

type keyKind uint8

const (
	keySubmitted keyKind = iota
	keyLeased
	keyFinished
	keyGone // no job of this key is left
)

// keyState is the state of the last job of a key.
type keyState struct {
	state int // absent, waiting, inHand, ended
	jid   string
}

// keyModel is what a single broker that never fails would do with the jobs of a key.
var keyModel = porcupine.Model{
	Init: func() any { return keyState{} },
	Step: func(state, input, _ any) (bool, any) {
		o, s := input.(*keyOperation), state.(keyState)
		switch o.kind {
		case keySubmitted:
			if s.state == absent || s.state == ended {
				return true, keyState{state: waiting}
			}
			return true, s // it joins
		case keyLeased: // a lease may have died with its leader
			if s.state == waiting && s.jid != o.jid || s.state == inHand && (s.jid == o.jid || s.jid == "") {
				return true, keyState{inHand, o.jid}
			}
			return o.mayBeLost, s
		case keyFinished:
			if s.state == inHand && s.jid == o.jid {
				return true, keyState{ended, o.jid}
			}
			return s.jid != o.jid || s.state == ended, s // the job before
		case keyGone:
			return s.state == absent || s.state == ended, s
		}
		return false, s
	},
	Equal: func(a, b any) bool { return a == b },
}

// markLost marks the leases that may have been lost together with their job: a job is handed out before its submission
// is committed. The submission is then asked again, which makes the same job or another one, and a worker takes that,
// perhaps after others of its key. The end of such a job was not acknowledged before it was leased again.
func markLost(operations []*keyOperation) {
	last, ended := make(map[string]time.Time), make(map[string]time.Time)
	for _, o := range operations {
		switch {
		case o.kind == keyLeased && o.to.After(last[o.jid]):
			last[o.jid] = o.to
		case o.kind == keyFinished && o.acked && (ended[o.jid].IsZero() || o.to.Before(ended[o.jid])):
			ended[o.jid] = o.to
		}
	}
	for _, o := range operations {
		end := ended[o.jid]
		o.mayBeLost = o.kind == keyLeased && (end.IsZero() || o.to.Before(last[o.jid]) && end.After(last[o.jid]))
	}
}

// keyHistoryCanBe checks the operations on one key.
func keyHistoryCanBe(operations []*keyOperation, end time.Time) bool {
	markLost(operations)
	var ops []porcupine.Operation
	for _, o := range operations {
		to := o.to
		if !o.acked || o.mayBeLost {
			to = end
		}
		ops = append(ops,
			porcupine.Operation{ClientId: o.client, Input: o, Call: o.from.UnixNano(), Return: to.UnixNano()})
	}
	return porcupine.CheckOperations(keyModel, ops)
}

func (h *history) addKey(o *keyOperation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keys == nil {
		h.keys = map[string][]*keyOperation{}
	}
	h.keys[o.key] = append(h.keys[o.key], o)
}

// produceKeys submits jobs with keys at a node.
func (l *load) produceKeys(n *server.BrokerServer) {
	client := int(l.numbers.Add(1))
	for i := 0; !l.ended(l.stop); {
		s, err := gearmanclient.Dial(n.Gearman)
		for ; err == nil && !l.ended(l.stop); i++ {
			key := fmt.Sprint("key-", (i+client)%keys)
			o := &keyOperation{kind: keySubmitted, key: key, client: client, from: time.Now()}
			_, err = s.Submit(gearmanclient.SubmitJobBg, keysQueue, key, key)
			o.to, o.acked = time.Now(), err == nil
			l.history.addKey(o)
			time.Sleep(pause)
		}
		if s != nil {
			_ = s.Close() // it may be broken
		}
		time.Sleep(pause)
	}
}

// workKeys takes jobs with keys at a node and finishes them.
func (l *load) workKeys(n *server.BrokerServer, stop <-chan struct{}) {
	client := int(l.numbers.Add(1))
	for !l.ended(stop) {
		f, err := dialFaktoryAs(n, fmt.Sprint("k", time.Now().UnixNano()))
		for err == nil && !l.ended(stop) {
			err = l.workKey(f, client)
		}
		if f != nil {
			_ = f.Close() // it may be broken
		}
		time.Sleep(pause)
	}
}

func (l *load) workKey(f *faktory, client int) error {
	lease := &keyOperation{kind: keyLeased, acked: true, client: client, from: time.Now()}
	reply, err := f.call("FETCH " + keysQueue)
	if err != nil || reply == "" {
		return err
	}
	var job struct {
		JID  string   `json:"jid"`
		Args []string `json:"args"`
	}
	if err := json.Unmarshal([]byte(reply), &job); err != nil || len(job.Args) != 1 {
		return errors.Join(err, fmt.Errorf("job %s", reply))
	}
	lease.key, lease.jid, lease.to = job.Args[0], job.JID, time.Now()
	l.history.addKey(lease)
	end := &keyOperation{kind: keyFinished, key: lease.key, jid: job.JID, client: client, from: time.Now()}
	_, err = f.call(`ACK {"jid":"%s"}`, job.JID)
	end.to, end.acked = time.Now(), err == nil
	l.history.addKey(end)
	return err
}

// verifyKeys checks the history of each key once no job waits any more. A job that is still leased was handed out in a
// reply that never arrived. It returns how many submissions have joined a job.
func (l *load) verifyKeys(t *testing.T) (joined int) {
	t.Helper()
	from := time.Now()
	var left string
	harness.Eventually(t, func() string {
		status, body, err := l.c.nodes[l.c.leader()].Get("/api/v1/jobs?state=leased&queue=" + keysQueue + "&limit=1000")
		if left = body; err != nil || status != 200 {
			return fmt.Sprint(status, body, err)
		}
		return ""
	})
	l.history.mu.Lock()
	defer l.history.mu.Unlock()
	submissions, ends := 0, 0
	for key, operations := range l.history.keys {
		if !strings.Contains(left, key+`"`) {
			operations = append(operations,
				&keyOperation{kind: keyGone, key: key, acked: true, from: from, to: time.Now()})
		}
		for _, o := range operations {
			switch {
			case o.acked && o.kind == keySubmitted:
				submissions++
			case o.acked && o.kind == keyFinished:
				ends++
			}
		}
		if !keyHistoryCanBe(operations, time.Now().Add(time.Hour)) {
			t.Errorf("history of %s cannot be", key)
			for _, o := range operations {
				t.Logf("  %+v", *o)
			}

		}
	}
	t.Logf("%d submissions with a key, %d jobs ended", submissions, ends)
	return submissions - ends
}

func TestCheckerFindsInvalidHistoriesOfKeys(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	do := func(kind keyKind, jid string, from int) *keyOperation {
		return &keyOperation{kind: kind, jid: jid, acked: true, client: from, from: at(from), to: at(from + 1)}
	}
	lost := do(keyFinished, "a", 5)
	lost.acked = false
	again := do(keySubmitted, "", 1)
	again.to = at(14)
	for name, c := range map[string]struct {
		operations []*keyOperation
		can        bool
	}{
		"two jobs in order": {[]*keyOperation{
			do(keySubmitted, "", 1), do(keyLeased, "a", 3), do(keyFinished, "a", 5), do(keySubmitted, "", 7),
			do(keyLeased, "b", 9),
			do(keyFinished, "b", 11), do(keyGone, "", 13),
		}, true},
		"joined and ended": {[]*keyOperation{
			do(keySubmitted, "", 1), do(keySubmitted, "", 3), do(keyLeased, "a", 5), do(keyFinished, "a", 7),
			do(keyGone, "", 9),
		}, true},
		"joined what had ended": {[]*keyOperation{
			do(keySubmitted, "", 1), do(keyLeased, "a", 3), do(keyFinished, "a", 5), do(keySubmitted, "", 7),
			do(keyGone, "", 9),
		}, false},
		"joined while the end was under way": {[]*keyOperation{
			do(keySubmitted, "", 1), do(keyLeased, "a", 3), lost, do(keySubmitted, "", 7), do(keyGone, "", 20),
		}, true},
		"lost": {[]*keyOperation{do(keySubmitted, "", 1), do(keyGone, "", 9)}, false},
		"leased after its end": {[]*keyOperation{
			do(keySubmitted, "", 1), do(keyLeased, "a", 3), do(keyFinished, "a", 5), do(keyLeased, "a", 7),
		}, false},
		"leased and ended again": {[]*keyOperation{
			do(keySubmitted, "", 1), do(keyLeased, "a", 3), do(keyFinished, "a", 5), do(keyLeased, "a", 7),
			do(keyFinished, "a", 9),
		}, false},
		"lost with its submission, which was asked again": {[]*keyOperation{
			again, do(keyLeased, "a", 3), lost, do(keySubmitted, "", 7), do(keyLeased, "b", 9),
			do(keyFinished, "b", 11), do(keyLeased, "a", 13), do(keyFinished, "a", 15), do(keyGone, "", 20),
		}, true},
		"lost with its submission, which made another job": {[]*keyOperation{
			again, do(keyLeased, "a", 3), lost, do(keyLeased, "b", 9), do(keyFinished, "b", 11), do(keyGone, "", 20),
		}, true},
		"ended, and its submission made another job": {[]*keyOperation{
			again, do(keyLeased, "a", 3), do(keyFinished, "a", 5), do(keyLeased, "b", 9), do(keyFinished, "b", 11),
		}, false},
		"one submission, two jobs": {[]*keyOperation{
			again, do(keyLeased, "a", 3), lost, do(keyLeased, "b", 9), do(keyFinished, "b", 11),
			do(keyLeased, "a", 13), do(keyFinished, "a", 15), do(keyGone, "", 20),
		}, false},
	} {
		if keyHistoryCanBe(c.operations, at(1000)) != c.can {
			t.Errorf("%s: %v", name, !c.can)
		}
	}
}
