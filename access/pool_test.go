package access

import (
	"errors"
	"testing"
)

func TestOneHolderGetsAtMostHalfOfAPool(t *testing.T) {
	t.Parallel()
	tenant, other := newPrincipal("tenant", []Grant{{Role: Read}}), newPrincipal("other", nil)
	pool := NewPool(100)
	takeAll := func(h Holder) (n int) {
		for pool.Take(h, 1) == nil {
			n++
		}
		return n
	}
	for _, c := range []struct {
		name   string
		holder Holder
		want   int
	}{
		{"the first", HolderOf(tenant, ""), 50},
		{"the same principal from another address", HolderOf(tenant, "192.0.2.1:5"), 0},
		{"a principal without roles", HolderOf(other, ""), 25},
		{"an address", HolderOf(Nobody, "192.0.2.1:5"), 13},
		{"the same address", HolderOf(nil, "192.0.2.1"), 0},
		{"a network", HolderOf(Nobody, "[2001:db8::1]:5"), 6},
		{"the same network", HolderOf(Nobody, "[2001:db8::2]:5"), 0},
		{"an administrator", HolderOf(Everyone, ""), 6},
		{"another one, when nothing is free", HolderOf(newPrincipal("root", []Grant{{Role: Admin}}), ""), 0},
	} {
		if n := takeAll(c.holder); n != c.want {
			t.Errorf("%s takes %d places, want %d", c.name, n, c.want)
		}
	}
	pool.Return(HolderOf(tenant, ""), 50)
	if n := takeAll(HolderOf(other, "")); n != 13 {
		t.Errorf("from 50 free places a holder of 25 takes %d", n)
	}
	var full *FullError
	if err := pool.Take(HolderOf(other, ""), 1); !errors.As(err, &full) || *full != (FullError{Held: 38, Size: 100}) {
		t.Errorf("%v", err)
	}
}

func TestPlacesAreTakenAllOrNone(t *testing.T) {
	t.Parallel()
	h := HolderOf(newPrincipal("tenant", nil), "")
	pool := NewPool(10)
	if pool.Take(h, 6) == nil {
		t.Error("more than the share at once")
	}
	if err := pool.Take(h, 5); err != nil {
		t.Error(err)
	}
	pool.Restore(h, 20)
	if pool.Take(HolderOf(Everyone, ""), 1) == nil {
		t.Error("a place of an overfull pool")
	}
	pool.Return(h, 25)
	if err := pool.Take(HolderOf(Everyone, ""), 10); err != nil {
		t.Error(err)
	}
}
