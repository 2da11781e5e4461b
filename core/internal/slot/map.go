// Package slot numbers values, so that deadlines and lists refer to them without pointers.
package slot

import "iter"

// Map holds values by number, from 1. The number of a removed value is used again. The zero value is an empty Map.
type Map[T any] struct {
	values []*T // the value with number n is at n-1; nil: the number is free
	free   []uint32
}

// Add adds a value and returns its number.
func (m *Map[T]) Add(v *T) uint32 {
	if last := len(m.free) - 1; last >= 0 {
		n := m.free[last]
		m.free = m.free[:last]
		m.values[n-1] = v
		return n
	}
	m.values = append(m.values, v)
	return m.Last()
}

// At returns the value with a number; nil: the number is free.
func (m *Map[T]) At(n uint32) *T { return m.values[n-1] }

// Remove removes the value with a number.
func (m *Map[T]) Remove(n uint32) {
	m.values[n-1] = nil
	m.free = append(m.free, n)
}

// Len returns the number of values.
func (m *Map[T]) Len() int { return len(m.values) - len(m.free) }

// Last returns the highest number so far.
func (m *Map[T]) Last() uint32 { return uint32(len(m.values)) }

// All returns the values in the order of their numbers. A value may be removed meanwhile.
func (m *Map[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for _, v := range m.values {
			if v != nil && !yield(v) {
				return
			}
		}
	}
}
