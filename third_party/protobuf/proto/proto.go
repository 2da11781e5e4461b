// Package proto has the functions of google.golang.org/protobuf/proto that Prometheus' library calls: pointers to values.
package proto

func pointer[T any](v T) *T { return &v }

// Float64 returns a pointer to v.
func Float64(v float64) *float64 { return pointer(v) }

// Int32 returns a pointer to v.
func Int32(v int32) *int32 { return pointer(v) }

// Int64 returns a pointer to v.
func Int64(v int64) *int64 { return pointer(v) }

// String returns a pointer to v.
func String(v string) *string { return pointer(v) }

// Uint32 returns a pointer to v.
func Uint32(v uint32) *uint32 { return pointer(v) }

// Uint64 returns a pointer to v.
func Uint64(v uint64) *uint64 { return pointer(v) }
