package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"broker/core"
)

// An idempotency key makes a submission safe to repeat: a second submission with the key returns the jobs of the first. The
// commit that admits the jobs also stores the use of the key in a ring of meta entries. Jobs without an id get an id that is derived
// from the key, so that a repetition finds them.
const (
	keptKeys    = 8192
	keyMeta     = "http/key/"
	keyFor      = 24 * time.Hour
	maxKeyBytes = 255
)

// usedKey describes the use of a key.
type usedKey struct {
	Number uint64       `json:"n"`
	Key    string       `json:"k"` // hash of the key and its owner
	Body   string       `json:"b"` // hash of the submission
	At     core.Instant `json:"at"`

	seqs   []uint64 // of the jobs; empty after a restart
	active bool     // the submission is in progress
}

// usedKeys are the keys used within the last keyFor.
type usedKeys struct {
	mu    sync.Mutex // guards the fields below
	byKey map[string]*usedKey
	ring  [keptKeys]*usedKey
	last  uint64
}

func keyName(number uint64) string { return fmt.Sprintf("%s%04d", keyMeta, number%keptKeys) }

// loadKeys reads the stored keys.
func (s *Service) loadKeys() error {
	k := &s.keys
	k.byKey = make(map[string]*usedKey)
	for _, value := range s.readRing(keptKeys, keyName) {
		u := &usedKey{}
		if err := json.Unmarshal(value, u); err != nil {
			return fmt.Errorf("read the idempotency keys: %w", err)
		}
		k.ring[u.Number%keptKeys] = u
		k.byKey[u.Key] = u
		k.last = max(k.last, u.Number)
	}
	return nil
}

// useKey begins a submission with a key. repeated means that the key was used for the same submission before.
func (s *Service) useKey(caller Caller, key string, subs []Submission) (u *usedKey, repeated bool, err error) {
	const field = "header.Idempotency-Key"
	if len(key) > maxKeyBytes {
		return nil, false, invalid(field, "the key must not be longer than %d bytes", maxKeyBytes)
	}
	for i := range subs {
		if subs[i].Ephemeral {
			return nil, false, invalid(field, "an ephemeral job cannot be submitted under a key")
		}
	}
	text, err := json.Marshal(subs)
	if err != nil {
		return nil, false, invalid("body", "%v", err)
	}
	hash, body := sha256.Sum256([]byte(caller.Name()+"\x00"+key)), sha256.Sum256(text)
	name, bodyText, now := hex.EncodeToString(hash[:]), hex.EncodeToString(body[:16]), s.Now()
	k := &s.keys
	k.mu.Lock()
	defer k.mu.Unlock()
	if u = k.byKey[name]; u != nil && now.Sub(u.At) < keyFor {
		switch {
		case u.active:
			return nil, false, &Error{Code: CodeKeyInUse, Field: field, Detail: "a submission under this key is being served"}
		case u.Body != bodyText:
			return nil, false, &Error{Code: CodeKeyReused, Field: field, Detail: "the key was used for another submission"}
		}
		return u, true, nil
	}
	k.last++
	u = &usedKey{Number: k.last, Key: name, Body: bodyText, At: now, active: true}
	if old := k.ring[u.Number%keptKeys]; old != nil && k.byKey[old.Key] == old {
		delete(k.byKey, old.Key)
	}
	k.ring[u.Number%keptKeys], k.byKey[name] = u, u
	return u, false, nil
}

// settleKey ends the submission that useKey began. A refused submission frees the key.
func (s *Service) settleKey(u *usedKey, admitted []core.Reply, err error) {
	k := &s.keys
	k.mu.Lock()
	defer k.mu.Unlock()
	u.active = false
	if e := (*Error)(nil); errors.As(err, &e) && !e.mayApply() && k.byKey[u.Key] == u {
		delete(k.byKey, u.Key)
		k.ring[u.Number%keptKeys] = nil
		return
	}
	for i := range admitted {
		u.seqs = append(u.seqs, admitted[i].Seq)
	}
}

// attach gives ids to the jobs of the submission, and stores the use of the key with them.
func (u *usedKey) attach(ops []core.Op) {
	for i, op := range ops {
		if job := op.(*core.Submit).Job; job.ID == "" {
			job.ID = u.jobID(i)
		}
	}
	ops[0].(*core.Submit).Meta = []core.MetaEntry{{Name: keyName(u.Number), Value: toJSON(u)}}
}

// jobID is the id for a job that was submitted without one.
func (u *usedKey) jobID(i int) string {
	sum := sha256.Sum256([]byte(u.Key + "/" + strconv.Itoa(i) + "/" + strconv.FormatInt(int64(u.At), 10)))
	var id uuid.UUID
	copy(id[:], sum[:])
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // version 4
	return id.String()
}

// ref returns the reference to a job of a key's submission.
func (u *usedKey) ref(i int, sub *Submission) core.Ref {
	switch {
	case i < len(u.seqs):
		return core.Ref{Seq: u.seqs[i]}
	case sub.ID != "":
		return core.Ref{ID: sub.ID}
	}
	return core.Ref{ID: u.jobID(i)}
}

// repeat answers a repeated submission with the original jobs. A job that no longer exists is shown as done.
func (s *Service) repeat(ctx context.Context, c *session, key *usedKey, subs []Submission, ops []core.Op, wait time.Duration) ([]Job, error) {
	deadline := s.Now().Add(wait)
	earlier, ended, gone := make([]core.Reply, len(ops)), make([]*core.Outcome, len(ops)), make([]bool, len(ops))
	var awaits []core.Op
	for i := range ops {
		job, ref := ops[i].(*core.Submit).Job, key.ref(i, &subs[i])
		if job.ID == "" {
			job.ID = key.jobID(i)
		}
		earlier[i].Seq = ref.Seq
		r, err := c.call(ctx, &core.Inspect{Ref: ref, Brief: true})
		if gone[i] = IsCode(err, CodeJobNotFound); gone[i] {
			continue
		}
		if err != nil {
			return nil, err
		}
		if earlier[i].Seq = r.Info.Seq; wait > 0 {
			awaits = append(awaits, &core.Await{Tag: uint64(i), Ref: core.Ref{Seq: r.Info.Seq}, Deadline: deadline})
		}
	}
	if len(awaits) > 0 {
		c.Do(awaits...)
		if err := c.await(ctx, ended, len(awaits), wait); err != nil {
			return nil, err
		}
	}
	views := s.viewSubmitted(c, ops, earlier, ended)
	for i := range views {
		if gone[i] {
			views[i].State = core.Done.String()
		}
	}
	return views, nil
}
