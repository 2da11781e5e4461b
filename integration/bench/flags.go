package main

import (
	"fmt"
	"strconv"
	"strings"
)

// numbers is a flag with a list of counts or sizes: 10,1k,2M. Suffixes with an i are powers of 1,024: 64Ki.
type numbers []int

func (n *numbers) String() string {
	var parts []string
	for _, v := range *n {
		parts = append(parts, strconv.Itoa(v))
	}
	return strings.Join(parts, ",")
}

// Set replaces the default.
func (n *numbers) Set(text string) error {
	*n = nil
	for part := range strings.SplitSeq(text, ",") {
		v, err := parseNumber(part)
		if err != nil {
			return err
		}
		*n = append(*n, v)
	}
	return nil
}

// number is a flag with a single count or size.
type number int

func (n *number) String() string { return strconv.Itoa(int(*n)) }

// Set replaces the default.
func (n *number) Set(text string) error {
	v, err := parseNumber(text)
	*n = number(v)
	return err
}

func parseNumber(text string) (int, error) {
	unit := 1
	for _, u := range []struct {
		suffix string
		size   int
	}{{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"k", 1e3}, {"M", 1e6}} {
		if digits, found := strings.CutSuffix(text, u.suffix); found {
			text, unit = digits, u.size
			break
		}
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%q is not a count such as 100, 10k, 64Ki or 1M", text)
	}
	return v * unit, nil
}
