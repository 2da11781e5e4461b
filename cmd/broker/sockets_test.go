package main

import "testing"

func TestConnectionsLeaveDescriptorsForTheStore(t *testing.T) {
	t.Parallel()
	for granted, want := range map[int]socketLimits{
		0: {0, 512}, 64: {28, 4}, 1024: {448, 64}, 4096: {2640, 256}, 65536: {63824, 512},
	} {
		got := divideDescriptors(granted)
		if got != want {
			t.Errorf("of %d: %+v, want %+v", granted, got, want)
		}
		if left := granted - got.clients - got.http; granted > 0 && left < min(reservedFiles, granted/2) {
			t.Errorf("of %d: %d are left for the store", granted, left)
		}
	}
}
