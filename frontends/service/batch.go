package service

import (
	"fmt"
	"strconv"
	"strings"
)

// A batch's name is its number in base 36 with all its digits, as Faktory clients know it.
const (
	batchPrefix = "b-"
	batchDigits = 13
)

// batchName names a batch; empty for none.
func batchName(number uint64) string {
	if number == 0 {
		return ""
	}
	digits := strconv.FormatUint(number, 36)
	return batchPrefix + strings.Repeat("0", batchDigits-len(digits)) + digits
}

// parseBatchName reads what batchName wrote.
func parseBatchName(name string) (uint64, error) {
	digits, ok := strings.CutPrefix(name, batchPrefix)
	number, err := strconv.ParseUint(digits, 36, 64)
	if !ok || err != nil || batchName(number) != name {
		return 0, fmt.Errorf("%q is not the id of a batch", name)
	}
	return number, nil
}
