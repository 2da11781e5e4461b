package service

import (
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

func (s *Service) parseToken(text string) (leaseToken, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) != tokenBytes+tokenMACBytes || !hmac.Equal(b[tokenBytes:], s.tokenMAC(b[:tokenBytes])) {
		return leaseToken{},
			&Error{Code: CodeBadLease, Field: "path.token", Detail: "this is not a lease token of this broker"}
	}
	return leaseToken{
		seq: binary.BigEndian.Uint64(b), leasedAt: core.Instant(binary.BigEndian.Uint64(b[8:])),
		span: time.Duration(binary.BigEndian.Uint32(b[16:])) * time.Millisecond,
	}, nil
}

func (s *Service) tokenMAC(b []byte) []byte {
	h := hmac.New(sha256.New, s.tokenKey[:])
	h.Write(b)
	return h.Sum(nil)[:tokenMACBytes]
}

// loadTokenKey reads the key, or creates it.
func (s *Service) loadTokenKey() error {
	c := s.openUnlisted()
	defer c.Close()
	r, err := c.ask(&core.ReadMeta{Name: tokenKeyMeta})
	if err != nil {
		return err
	}
	if copy(s.tokenKey[:], r.Data) == tokenKeyBytes {
		return nil
	}
	_, _ = rand.Read(s.tokenKey[:]) // never fails
	_, err = c.ask(&core.WriteMeta{Entries: []core.MetaEntry{{Name: tokenKeyMeta, Value: s.tokenKey[:]}}})
	return err
}
