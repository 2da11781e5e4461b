package core

import (
	"testing"
	"unsafe"
)

// Replies and jobs are copied or allocated for each job. Fields that few of them need belong behind a pointer.
func TestHotStructsDoNotGrow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ got, most uintptr }{
		"Reply":    {unsafe.Sizeof(Reply{}), 240},
		"Job":      {unsafe.Sizeof(Job{}), 352}, // what Go allocates for any from 321 on
		"Submit":   {unsafe.Sizeof(Submit{}), 64},
		"Lease":    {unsafe.Sizeof(Lease{}), 120},
		"Complete": {unsafe.Sizeof(Complete{}), 136},
		"Fail":     {unsafe.Sizeof(Fail{}), 136},
	} {
		if c.got > c.most {
			t.Errorf("%s has %d bytes, at most %d", name, c.got, c.most)
		}
	}
}
