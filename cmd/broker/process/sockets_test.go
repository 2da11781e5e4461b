package process

import "testing"

func TestConnectionsLeaveDescriptorsForTheStore(t *testing.T) {
	t.Parallel()
	for granted, want := range map[int]socketLimits{
		0: {0, 1024}, 64: {24, 8}, 1024: {384, 128}, 4096: {2384, 512}, 65536: {63312, 1024},
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
