package core

import (
	"testing"

	"github.com/google/uuid"
)

func TestMintedIDsAndAliasesMapBackToTheSeq(t *testing.T) {
	t.Parallel()
	for _, seq := range []uint64{0, 1, 2, 1 << 20, 1<<63 + 7, ^uint64(0)} {
		created := Instant(1_790_000_000_123_456)
		got, ms, ok := ParseMintedID(MintedID(seq, created))
		if !ok || got != seq || ms != int64(created/1000) {
			t.Errorf("minted id of %d parses to %d, %d, %v", seq, got, ms, ok)
		}
		alias := Alias(seq)
		if got, ok := ParseAlias(alias); !ok || got != seq {
			t.Errorf("alias of %d parses to %d, %v", seq, got, ok)
		}
		if !IsUUIDv4(alias) {
			t.Errorf("alias %s is no UUIDv4", alias)
		}
		if IsUUIDv4(MintedID(seq, created)) {
			t.Errorf("minted id %s passes for a UUIDv4", MintedID(seq, created))
		}
	}
}

func TestClientIDsAreNotTakenForMintedIDs(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		"", "short", "6ba7b810-9dad-41d1-80b4-00c04fd430c4", "5B1D9E37-0000-41a6-80c3-000000000000",
	} {
		if _, ok := ParseAlias(id); ok {
			t.Errorf("%q taken for an alias", id)
		}
		if _, _, ok := ParseMintedID(id); ok {
			t.Errorf("%q taken for a minted id", id)
		}
	}
}

func TestIsUUIDv4AcceptsOnlyCanonicalVersion4(t *testing.T) {
	t.Parallel()
	const canonical = "6ba7b810-9dad-41d1-80b4-00c04fd430c4"
	ids := []string{canonical, "", canonical[:35], canonical + "0", "6ba7b8109dad41d180b400c04fd430c4"}
	for i := range canonical {
		for _, c := range []byte("0489abcfgAF-/:@`{\x00\xff") {
			id := []byte(canonical)
			id[i] = c
			ids = append(ids, string(id))
		}
	}
	for _, id := range ids {
		u, err := uuid.Parse(id)
		want := err == nil && u.String() == id && u.Version() == 4 && u.Variant() == uuid.RFC4122
		if got, ofBytes := IsUUIDv4(id), IsUUIDv4([]byte(id)); got != want || ofBytes != want {
			t.Errorf("%q: %v as text, %v as bytes, want %v", id, got, ofBytes, want)
		}
	}
}
