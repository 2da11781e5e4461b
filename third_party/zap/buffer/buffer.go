// Package buffer has the buffers of go.uber.org/zap/buffer, without a pool.
package buffer

import "bytes"

// Buffer is a text under construction.
type Buffer struct{ bytes.Buffer }

// AppendString adds a text.
func (b *Buffer) AppendString(s string) { b.WriteString(s) }

// Pool makes buffers.
type Pool struct{}

// NewPool returns a Pool.
func NewPool() Pool { return Pool{} }

// Get makes a buffer.
func (Pool) Get() *Buffer { return &Buffer{} }
