package service

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"

	"broker/core"
)

// A lease token identifies a lease. Its holder gets it:
//
//	job    begin  length  MAC
//	8      8      4       16 bytes, in base64url
//
// The length of the lease is in milliseconds. The MAC prevents clients from guessing tokens of other workers. Its key
// is in the store, so that tokens survive a restart.
type leaseToken struct {
	seq      uint64
	leasedAt core.Instant
	span     time.Duration // duration of the lease
}

const (
	tokenKeyBytes = 32
	tokenBytes    = 20 // before the MAC
	tokenMACBytes = 16
	tokenKeyMeta  = "http/lease-key"
)

func (s *Service) formatToken(t leaseToken) string {
	b := binary.BigEndian.AppendUint64(nil, t.seq)
	b = binary.BigEndian.AppendUint64(b, uint64(t.leasedAt))
	b = binary.BigEndian.AppendUint32(b, uint32(min(t.span.Milliseconds(), 1<<32-1)))
	return base64.RawURLEncoding.EncodeToString(append(b, s.tokenMAC(b)...))
}

// tokenOf is parseToken once the key is known.
func (s *Service) tokenOf(ctx context.Context, c *session, text string) (leaseToken, error) {
	if err := s.learnTokenKey(ctx, c); err != nil {
		return leaseToken{}, err
	}
	return s.parseToken(text)
}

func (s *Service) parseToken(text string) (leaseToken, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != tokenBytes+tokenMACBytes || !hmac.Equal(b[tokenBytes:], s.tokenMAC(b[:tokenBytes])) {
		return leaseToken{},
			&Error{Code: CodeBadLease, Field: "token", Detail: "this is not a lease token of this broker"}
	}
	return leaseToken{
		seq: binary.BigEndian.Uint64(b), leasedAt: core.Instant(binary.BigEndian.Uint64(b[8:])),
		span: time.Duration(binary.BigEndian.Uint32(b[16:])) * time.Millisecond,
	}, nil
}

func (s *Service) tokenMAC(b []byte) []byte {
	h := hmac.New(sha256.New, s.tokenKey.Load()[:])
	h.Write(b)
	return h.Sum(nil)[:tokenMACBytes]
}

// loadTokenKey reads the key, or creates it.
func (s *Service) loadTokenKey() error {
	c := s.openUnlisted()
	defer c.Close()
	r, err := c.ask(&core.ReadMeta{Name: tokenKeyMeta})
	if err != nil || s.takeTokenKey(r.Data) {
		return err
	}
	var key [tokenKeyBytes]byte
	_, _ = rand.Read(key[:]) // never fails
	s.takeTokenKey(key[:])
	_, err = c.ask(&core.WriteMeta{Entries: []core.MetaEntry{{Name: tokenKeyMeta, Value: key[:]}}})
	return err
}

// takeTokenKey uses a key, and reports whether it is one.
func (s *Service) takeTokenKey(key []byte) bool {
	if len(key) != tokenKeyBytes {
		return false
	}
	s.tokenKey.Store(new([tokenKeyBytes]byte(key)))
	return true
}
