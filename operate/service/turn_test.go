package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestALongReadLetsOthersGoFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(1)
		ctx, long, err := turns.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		go func() {
			_, short, err := turns.Take(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			order = append(order, "short")
			short.End()
		}()
		synctest.Wait()
		turnOf(ctx).yield()
		order = append(order, "long")
		long.End()
		long.End()
		if len(order) != 2 || order[0] != "short" {
			t.Errorf("order %v", order)
		}
		if turnOf(ctx).yield(); len(turns.slots) != 0 {
			t.Error("a turn that is over takes a place again")
		}
		turnOf(t.Context()).yield() // it has no turn
	})
}

func TestAClientThatLeavesGetsNoTurn(t *testing.T) {
	t.Parallel()
	turns := NewTurns(1)
	if _, _, err := turns.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, _, err := turns.Take(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}
