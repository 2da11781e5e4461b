package hostile

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is a kind of fault.
type Kind uint8

// The kinds.
const (
	Duplicate Kind = iota // a completion is acknowledged but lost: the job is delivered again
	Drop                  // the connection closes, before a request takes effect or within its reply
	Late                  // a reply is delayed
	Expire                // a lease ends early
	Busy                  // a submission is refused: the queue is full
	Reorder               // later jobs overtake a job
	Jump                  // the broker's clock is set
	kinds
)

var kindNames = [kinds]string{"duplicate", "drop", "late", "expire", "busy", "reorder", "jump"}

func (k Kind) String() string { return kindNames[k] }

// Rates are the shares of jobs that meet each kind of fault, from 0 to 1.
type Rates [kinds]float64

// DefaultRates give about every fifth job a fault.
var DefaultRates = Rates{Duplicate: 0.05, Drop: 0.02, Late: 0.05, Expire: 0.02, Busy: 0.02, Reorder: 0.05, Jump: 0.01}

// ParseRates reads a list such as "duplicate=0.05,drop=0.01". Kinds that are not in the list never happen.
func ParseRates(text string) (Rates, error) {
	var r Rates
	if text == "" || text == "none" {
		return r, nil
	}
	for item := range strings.SplitSeq(text, ",") {
		name, share, _ := strings.Cut(item, "=")
		k, err := parseKind(strings.TrimSpace(name))
		if err != nil {
			return r, err
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(share), 64)
		if err != nil || !(f >= 0 && f <= 1) {
			return r, fmt.Errorf("%s: %q is not a number from 0 to 1", k, share)
		}
		r[k] = f
	}
	return r, nil
}

func parseKind(name string) (Kind, error) {
	for k, known := range kindNames {
		if known == name {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("unknown fault %q: the faults are %s", name, strings.Join(kindNames[:], ", "))
}

// String returns the list in the form that ParseRates reads.
func (r Rates) String() string {
	var items []string
	for k, share := range r {
		if share > 0 {
			items = append(items, kindNames[k]+"="+strconv.FormatFloat(share, 'g', -1, 64))
		}
	}
	if len(items) == 0 {
		return "none"
	}
	return strings.Join(items, ",")
}
