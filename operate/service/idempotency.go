package service

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"broker/access"
	"broker/core"
)

// An idempotency key makes a submission safe to repeat: a second submission with the key returns the jobs of the first.
// The commit that admits the jobs also stores the use of the key in a document. Jobs without an id get an id that is
// derived from the key, so that a repetition finds them. A key belongs to the principal that uses it, and each
// principal has a share of all keys.
//
//	http/keys/HASH/AT   HASH: of the owner and the key, 64 hexadecimal digits; AT: of the use, 16 hexadecimal digits
//	                    value: hash of the submission (16 bytes), name of the owner
const (
	maxKeys     = 1_000_000 // keys of all principals; each takes about 200 bytes of memory
	keyDocs     = "http/keys/"
	keyFor      = 24 * time.Hour
	maxKeyBytes = 255
	staleKeys   = 8 // documents of expired keys that one submission removes
)

type (
	keyHash  [sha256.Size]byte
	bodyHash [16]byte
)

// usedKey is the use of a key.
type usedKey struct {
	hash  keyHash
	body  bodyHash // of the submission
	owner string
	at    core.Instant

	holder access.Holder
	seqs   []uint64 // of the jobs; empty after a restart
	active bool     // the submission is in progress
}

// usedKeys are the keys used within the last keyFor.
type usedKeys struct {
	pool *access.Pool

	mu     sync.Mutex // guards the fields below
	byHash map[keyHash]*usedKey
	owned  map[string][]*usedKey // by owner, oldest first
	stale  []string              // documents of expired keys
}

// docName is the name of the document of a key.
func (u *usedKey) docName() string {
	return fmt.Sprintf("%s%x/%016x", keyDocs, u.hash, uint64(u.at))
}

// parseKeyDoc reads a stored key.
func parseKeyDoc(d core.MetaEntry) (*usedKey, error) {
	u := &usedKey{}
	hash, at, _ := strings.Cut(strings.TrimPrefix(d.Name, keyDocs), "/")
	raw, err := hex.DecodeString(hash)
	used, err2 := strconv.ParseInt(at, 16, 64)
	if err = errors.Join(err, err2); err != nil || len(raw) != len(u.hash) || len(d.Value) < len(u.body) {
		return nil, fmt.Errorf("read the idempotency key %q: %w", d.Name, errors.Join(err, core.ErrInvalid))
	}
	u.hash, u.body, u.owner = keyHash(raw), bodyHash(d.Value), string(d.Value[len(u.body):])
	u.at = core.Instant(used)
	u.holder = access.NamedHolder(u.owner, false)
	return u, nil
}

// loadKeys reads the stored keys.
func (s *Service) loadKeys() error {
	k := &s.keys
	k.pool = access.NewPool(maxKeys)
	k.byHash, k.owned = make(map[keyHash]*usedKey), make(map[string][]*usedKey)
	if err := s.loadEarlierKeys(); err != nil {
		return err
	}
	c := s.openUnlisted()
	defer c.Close()
	var all []*usedKey
	for after := ""; ; {
		r, err := c.ask(&core.ReadDocuments{Tag: 1, Prefix: keyDocs, After: after, Limit: 10_000})
		if err != nil {
			return fmt.Errorf("read the idempotency keys: %w", err)
		}
		if len(r.Documents) == 0 {
			break
		}
		for _, d := range r.Documents {
			u, err := parseKeyDoc(d)
			if err != nil {
				return err
			}
			all = append(all, u)
			after = d.Name
		}
	}
	slices.SortFunc(all, func(a, b *usedKey) int { return cmp.Compare(a.at, b.at) })
	now := s.Now()
	for _, u := range all {
		if now.Sub(u.at) >= keyFor {
			k.stale = append(k.stale, u.docName())
			continue
		}
		k.pool.Restore(u.holder, 1)
		k.add(u)
	}
	return nil
}

// add lists a key. The caller holds mu, or nobody else uses the keys yet.
func (k *usedKeys) add(u *usedKey) {
	k.byHash[u.hash] = u
	k.owned[u.owner] = append(k.owned[u.owner], u)
}

// expire forgets the expired keys of an owner. The caller holds mu.
func (k *usedKeys) expire(owner string, now core.Instant) {
	keys := k.owned[owner]
	n := 0
	for ; n < len(keys) && now.Sub(keys[n].at) >= keyFor; n++ {
		u := keys[n]
		k.pool.Return(u.holder, 1)
		k.stale = append(k.stale, u.docName())
		if k.byHash[u.hash] == u {
			delete(k.byHash, u.hash)
		}
		keys[n] = nil
	}
	if k.owned[owner] = keys[n:]; n == len(keys) {
		delete(k.owned, owner)
	}
}

// take takes a place for a key. If there is none, the error says when the owner has one again. The caller holds mu.
func (k *usedKeys) take(owner string, h access.Holder, now core.Instant) error {
	err := k.pool.Take(h, 1)
	if err == nil {
		return nil
	}
	for each := range k.owned {
		k.expire(each, now)
	}
	if err = k.pool.Take(h, 1); err == nil {
		return nil
	}
	wait := time.Minute
	if keys := k.owned[owner]; len(keys) > 0 {
		wait = keys[0].at.Add(keyFor).Sub(now)
	}
	return &Error{
		Code: CodeTooMany, Field: keyField, RetryAfter: wait,
		Detail: "too many idempotency keys within a day: " + err.Error(),
	}
}

// keyField is the field of errors about a key.
const keyField = "Idempotency-Key"

func keyError(code Code, detail string) *Error {
	return &Error{Code: code, Field: keyField, Detail: detail}
}

// useKey begins a submission with a key. repeated means that the key was used for the same submission before.
func (s *Service) useKey(caller Caller, key string, subs []Submission) (u *usedKey, repeated bool, err error) {
	if len(key) > maxKeyBytes {
		return nil, false, invalid(keyField, "the key must not be longer than %d bytes", maxKeyBytes)
	}
	for i := range subs {
		if subs[i].Ephemeral {
			return nil, false, invalid(keyField, "an ephemeral job cannot be submitted under a key")
		}
	}
	text, err := json.Marshal(subs)
	if err != nil {
		return nil, false, invalid("", "%v", err)
	}
	owner, now := caller.Name(), s.Now()
	sum := sha256.Sum256(text)
	hash, body := keyHash(sha256.Sum256([]byte(owner+"\x00"+key))), bodyHash(sum[:])
	k := &s.keys
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expire(owner, now)
	if u = k.byHash[hash]; u != nil && now.Sub(u.at) < keyFor {
		switch {
		case u.active:
			return nil, false, keyError(CodeKeyInUse, "a submission under this key is being served")
		case u.body != body:
			return nil, false, keyError(CodeKeyReused, "the key was used for another submission")
		}
		return u, true, nil
	}
	holder := caller.Holder()
	if err := k.take(owner, holder, now); err != nil {
		return nil, false, err
	}
	u = &usedKey{hash: hash, body: body, owner: owner, at: now, holder: holder, active: true}
	k.add(u)
	return u, false, nil
}

// settleKey ends the submission that useKey began. A refused submission frees the key.
func (s *Service) settleKey(u *usedKey, stored *core.WriteDocuments, admitted []core.Reply, err error) {
	k := &s.keys
	k.mu.Lock()
	defer k.mu.Unlock()
	u.active = false
	if e := (*Error)(nil); errors.As(err, &e) && !e.mayApply() {
		for _, d := range stored.Documents[1:] { // they were not removed
			k.stale = append(k.stale, d.Name)
		}
		k.free(u)
		return
	}
	for i := range admitted {
		u.seqs = append(u.seqs, admitted[i].Seq)
	}
}

// free forgets a key that was not used. The caller holds mu.
func (k *usedKeys) free(u *usedKey) {
	if k.byHash[u.hash] == u {
		delete(k.byHash, u.hash)
	}
	keys := k.owned[u.owner]
	for i := len(keys) - 1; i >= 0; i-- { // it is among the newest
		if keys[i] == u {
			k.owned[u.owner] = slices.Delete(keys, i, i+1)
			k.pool.Return(u.holder, 1)
			break
		}
	}
	if len(k.owned[u.owner]) == 0 {
		delete(k.owned, u.owner)
	}
}

// attach gives ids to the jobs of the submission. It returns the operation that stores the use of the key, for the
// commit of the jobs; it also removes some documents of expired keys.
func (s *Service) attach(u *usedKey, ops []core.Op) *core.WriteDocuments {
	for i, op := range ops {
		if job := op.(*core.Submit).Job; job.ID == "" {
			job.ID = u.jobID(i)
		}
	}
	documents := []core.MetaEntry{{Name: u.docName(), Value: append(bytes.Clone(u.body[:]), u.owner...)}}
	k := &s.keys
	k.mu.Lock()
	defer k.mu.Unlock()
	n := min(staleKeys, len(k.stale))
	for _, name := range k.stale[:n] {
		documents = append(documents, core.MetaEntry{Name: name})
	}
	if k.stale = k.stale[n:]; len(k.stale) == 0 {
		k.stale = nil
	}
	return &core.WriteDocuments{Documents: documents}
}

// jobID is the id for a job that was submitted without one.
func (u *usedKey) jobID(i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%x/%d/%d", u.hash, i, int64(u.at)))
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
func (s *Service) repeat(
	ctx context.Context, c *session, key *usedKey, subs []Submission, ops []core.Op, wait time.Duration,
) ([]Job, error) {
	deadline := s.Now().Add(wait)
	earlier, ended, gone := make([]core.Reply, len(ops)), make([]*core.Outcome, len(ops)), make([]bool, len(ops))
	var awaits []core.Op
	for i := range ops {
		job, ref := ops[i].(*core.Submit).Job, key.ref(i, &subs[i])
		if job.ID == "" {
			job.ID = key.jobID(i)
		}
		earlier[i].Seq = ref.Seq
		r, err := c.ask(&core.Inspect{Ref: ref, Brief: true})
		err = c.after(ctx, r.Commit, err) // not a read for the caller: the outcome of the submission is unknown
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
