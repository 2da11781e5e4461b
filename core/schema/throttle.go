package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"broker/core"
)

// throttle is what a limit limits. N and F are the numbers, or pointers to them where a setting may be absent.
type throttle[N, F any] struct {
	Concurrency N `json:"concurrency" required:"false" unit:"count" maximum:"4294967295" label:"Jobs running at once" says:"%s at once" doc:"concurrent leases, each with the cost of its job; 0: no limit"`
	PerWorker   N `json:"per_worker" was:"worker" required:"false" unit:"count" maximum:"4294967295" label:"For one worker" says:"%s per worker" doc:"concurrent leases of one worker; 0: no limit"`
	SlotForS    F `json:"slot_for_s" was:"timeout" required:"false" unit:"seconds" minimum:"0" maximum:"3153600000" label:"A job counts for" says:"slots for %s" doc:"a slot is free again after this time, even if the lease continues; 0: only at the end of the lease"`
	RatePerS    F `json:"rate_per_s" was:"rate" required:"false" unit:"per second" minimum:"0" maximum:"1000000" label:"Starts a second" says:"%s/s" doc:"leases a second, at least one a day; 0: no limit"`
	Burst       N `json:"burst" required:"false" unit:"count" maximum:"4294967295" label:"In a burst, after a pause" says:"burst %s" doc:"leases at once after a pause, with a rate; 0: one"`
}

// Throttle is a core.Throttle in JSON.
type Throttle throttle[uint32, float64]

// ThrottleChange changes a Throttle. Settings that are nil do not change.
type ThrottleChange throttle[*uint32, *float64]

// ThrottleRows are the settings of a Throttle, in the order in which they are shown.
var ThrottleRows = rowsOf[Throttle]()

// ParseThrottle reads a throttle of the settings file. old says which earlier names it has; at is the path of the
// throttle in the file. Errors are of type *Error.
func ParseThrottle(at string, text json.RawMessage) (t Throttle, old []string, err error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return t, nil, wrong(at, "a limit is a table")
	}
	named := make(map[string]json.RawMessage, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		field := memberOf(at, name)
		i := slices.IndexFunc(ThrottleRows, func(r Row) bool { return r.Name == name || r.Was == name })
		if i < 0 {
			return t, nil, wrong(field, "a limit has no setting %s", name)
		}
		row := &ThrottleRows[i]
		if name == row.Was {
			old = append(old, fmt.Sprintf("%s is an old name of %s", field, row.Name))
		}
		if named[row.Name] != nil {
			return t, nil, wrong(field, "%s is there twice: %s is its old name", row.Name, row.Was)
		}
		if _, err := row.number(field, members[name]); err != nil {
			return t, nil, err
		}
		named[row.Name] = members[name]
	}
	if err := json.Unmarshal(encode(named), &t); err != nil {
		return t, nil, wrong(at, "%v", err)
	}
	return t, old, nil
}

// CheckThrottle checks the bounds of a Throttle or ThrottleChange. at is its path in the input. Errors are of type
// *Error.
func CheckThrottle(at string, t any) error {
	members := Members(t)
	for i := range ThrottleRows {
		r := &ThrottleRows[i]
		if value := members[r.Name]; string(value) != "null" {
			if _, err := r.number(memberOf(at, r.Name), value); err != nil {
				return err
			}
		}
	}
	return nil
}

// Core is the throttle for the core.
func (t *Throttle) Core() core.Throttle {
	return core.Throttle{
		Leased: t.Concurrency, LeasedPerWorker: t.PerWorker, SlotFor: durationOf(t.SlotForS), Rate: t.RatePerS,
		Burst: t.Burst,
	}
}

// ThrottleOf is the inverse of Core.
func ThrottleOf(t *core.Throttle) Throttle {
	return Throttle{
		Concurrency: t.Leased, PerWorker: t.LeasedPerWorker, SlotForS: t.SlotFor.Seconds(), RatePerS: t.Rate,
		Burst: t.Burst,
	}
}

// Over is a throttle with the changes.
func (c *ThrottleChange) Over(t core.Throttle) core.Throttle {
	set(&t.Leased, c.Concurrency)
	set(&t.LeasedPerWorker, c.PerWorker)
	set(&t.Rate, c.RatePerS)
	set(&t.Burst, c.Burst)
	if c.SlotForS != nil {
		t.SlotFor = durationOf(*c.SlotForS)
	}
	return t
}

// String is the throttle for people; empty: it limits nothing.
func (t *Throttle) String() string { return Sentence(ThrottleRows, Members(t), false) }

func durationOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// set changes a value if a new value is given.
func set[T any](value, to *T) {
	if to != nil {
		*value = *to
	}
}
