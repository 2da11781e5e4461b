package service

import (
	"fmt"
	"strconv"
)

// batchName names a batch; empty for none.
func (s *Service) batchName(number uint64) string {
	switch {
	case number == 0:
		return ""
	case s.o.BatchName != nil:
		return s.o.BatchName(number)
	}
	return strconv.FormatUint(number, 10)
}

// parseBatchName reads what batchName wrote.
func (s *Service) parseBatchName(name string) (uint64, error) {
	var number uint64
	var ok bool
	if s.o.ParseBatchName != nil {
		number, ok = s.o.ParseBatchName(name)
	} else {
		n, err := strconv.ParseUint(name, 10, 64)
		number, ok = n, err == nil && n != 0
	}
	if !ok {
		return 0, fmt.Errorf("%q is not the id of a batch", name)
	}
	return number, nil
}
