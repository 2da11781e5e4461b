// Package timestamppb has the point in time of the package with this name in google.golang.org/protobuf, as a plain struct.
package timestamppb

import (
	"errors"
	"time"
)

// Timestamp is a point in time.
type Timestamp struct {
	Seconds int64 // since 1970
	Nanos   int32 // within the second
}

// New returns the Timestamp of a time.
func New(t time.Time) *Timestamp {
	return &Timestamp{Seconds: t.Unix(), Nanos: int32(t.Nanosecond())} //nolint:gosec // less than 1e9
}

// Now is the present.
func Now() *Timestamp { return New(time.Now()) }

// AsTime returns the time in UTC; nil is 1970.
func (x *Timestamp) AsTime() time.Time { return time.Unix(x.GetSeconds(), int64(x.GetNanos())).UTC() }

// GetSeconds returns the field Seconds, or zero of nil.
func (x *Timestamp) GetSeconds() int64 {
	if x == nil {
		return 0
	}
	return x.Seconds
}

// GetNanos returns the field Nanos, or zero of nil.
func (x *Timestamp) GetNanos() int32 {
	if x == nil {
		return 0
	}
	return x.Nanos
}

// CheckValid fails for nil and for what is no time.
func (x *Timestamp) CheckValid() error {
	if x == nil || x.Nanos < 0 || x.Nanos >= int32(time.Second) {
		return errors.New("invalid timestamp")
	}
	return nil
}
