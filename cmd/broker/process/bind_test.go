package process

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
)

func TestBindRetryIgnoresOtherErrors(t *testing.T) {
	t.Parallel()
	inUse := fmt.Errorf("listen gearman :4730: %w", syscall.EADDRINUSE)
	for want, errs := range map[bool][]error{
		true: {inUse, errors.Join(inUse), errors.Join(errors.Join(inUse, inUse), inUse)},
		false: {
			nil, syscall.EACCES, errors.Join(inUse, syscall.EACCES), errors.Join(errors.Join(syscall.EACCES), inUse),
		},
	} {
		for _, err := range errs {
			if got := isInUse(err); got != want {
				t.Errorf("%v: %v", err, got)
			}
		}
	}
}
