// Package protodelim stands for the encoding of protobuf messages in a stream, which the broker neither reads nor writes.
package protodelim

import (
	"errors"
	"io"
)

// ErrNotSupported is the result of every function.
var ErrNotSupported = errors.New("protobuf is not supported")

// Reader is what messages would be read from.
type Reader interface {
	io.Reader
	io.ByteReader
}

// MarshalTo fails.
func MarshalTo(io.Writer, any) (int, error) { return 0, ErrNotSupported }

// UnmarshalOptions are accepted.
type UnmarshalOptions struct{ MaxSize int64 }

// UnmarshalFrom fails.
func (UnmarshalOptions) UnmarshalFrom(Reader, any) error { return ErrNotSupported }
