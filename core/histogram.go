package core

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"time"
)

// Histogram counts durations. The width of a bucket is at most a sixteenth of its lower bound, so quantiles are
// accurate to 4 %. The zero Histogram is empty and ready for use. Histograms can be merged.
//
// It uses memory only for the powers of two that have occurred, so thousands of histograms can be kept. Add allocates
// only for the first duration in a power of two. (HdrHistogram reserves the whole range; DDSketch computes a logarithm
// per value.)
type Histogram struct {
	count   uint64
	micros  uint64 // sum of all
	octaves [histogramOctaves]*[octaveBuckets]uint64
}

const (
	octaveBits       = 4
	octaveBuckets    = 1 << octaveBits
	histogramOctaves = 40 // the last one ends at 101 days; longer durations count as that
)

// Bucket is a part of a histogram.
type Bucket struct {
	From, To time.Duration // it counts durations from From up to but not including To
	Count    uint64
}

// bucketOf returns the octave of a number of microseconds, and the bucket in that octave.
//
//	octave 0: 0 to 15 µs, each a bucket; octave n: 2^(n+3) to 2^(n+4) µs in sixteen buckets
func bucketOf(us uint64) (octave, bucket int) {
	if us < octaveBuckets {
		return 0, int(us)
	}
	n := bits.Len64(us) - octaveBits // from 1
	if n >= histogramOctaves {
		return histogramOctaves - 1, octaveBuckets - 1
	}
	return n, int(us>>(n-1)) - octaveBuckets
}

// bucketStart is the shortest duration of a bucket.
func bucketStart(octave, bucket int) time.Duration {
	if octave == 0 {
		return time.Duration(bucket) * time.Microsecond
	}
	return time.Duration(octaveBuckets+bucket) << (octave - 1) * time.Microsecond
}

func bucketEnd(octave, bucket int) time.Duration {
	if bucket++; bucket == octaveBuckets {
		octave, bucket = octave+1, 0
	}
	return bucketStart(octave, bucket)
}

// Add counts a duration; a negative one counts as none.
func (h *Histogram) Add(d time.Duration) { h.AddSpan(Instant(d / time.Microsecond)) }

// AddSpan counts the span between two instants; a negative one counts as none.
func (h *Histogram) AddSpan(span Instant) {
	us := uint64(max(span, 0))
	octave, bucket := bucketOf(us)
	o := h.octaves[octave]
	if o == nil {
		o = new([octaveBuckets]uint64)
		h.octaves[octave] = o
	}
	o[bucket]++
	h.count++
	h.micros += us
}

// Count is how many durations were counted.
func (h *Histogram) Count() uint64 { return h.count }

// Sum is the sum of all durations that were counted.
func (h *Histogram) Sum() time.Duration { return time.Duration(h.micros) * time.Microsecond }

// Merge adds the counts of another histogram.
func (h *Histogram) Merge(o *Histogram) {
	if o.count == 0 {
		return
	}
	h.count += o.count
	h.micros += o.micros
	for i, from := range o.octaves {
		if from == nil {
			continue
		}
		if h.octaves[i] == nil {
			h.octaves[i] = new([octaveBuckets]uint64)
		}
		for j, n := range from {
			h.octaves[i][j] += n
		}
	}
}

// Reset empties the histogram; it keeps its memory.
func (h *Histogram) Reset() {
	if h.count == 0 {
		return
	}
	h.count, h.micros = 0, 0
	for _, o := range h.octaves {
		if o != nil {
			*o = [octaveBuckets]uint64{}
		}
	}
}

// Quantiles sets into to the durations that these shares (0 to 1, in ascending order) of all durations do not exceed.
// Each result is the middle of a bucket, or zero if nothing was counted.
func (h *Histogram) Quantiles(into []time.Duration, parts ...float64) {
	clear(into)
	if h.count == 0 {
		return
	}
	k, seen := 0, uint64(0)
	for i, o := range h.octaves {
		if o == nil {
			continue
		}
		for j, n := range o {
			seen += n
			for n > 0 && k < len(parts) && float64(seen) >= parts[k]*float64(h.count) {
				into[k] = bucketStart(i, j)
				if width := bucketEnd(i, j) - into[k]; width > time.Microsecond {
					into[k] += width / 2
				}
				k++
			}
		}
	}
}

// Below returns how many durations are less than d. d should be the end of a bucket: a power of two in microseconds.
func (h *Histogram) Below(d time.Duration) (n uint64) {
	for i, o := range h.octaves {
		if o == nil {
			continue
		}
		for j, count := range o {
			if bucketEnd(i, j) <= d {
				n += count
			}
		}
	}
	return n
}

// Buckets returns the buckets that are not empty, in ascending order.
func (h *Histogram) Buckets() (all []Bucket) {
	for i, o := range h.octaves {
		if o == nil {
			continue
		}
		for j, n := range o {
			if n > 0 {
				all = append(all, Bucket{From: bucketStart(i, j), To: bucketEnd(i, j), Count: n})
			}
		}
	}
	return all
}

// MarshalBinary implements encoding.BinaryMarshaler: the sum, and the number, octave and bucket of all that are not
// empty.
func (h *Histogram) MarshalBinary() ([]byte, error) {
	b := binary.AppendUvarint(nil, h.micros)
	for i, o := range h.octaves {
		if o == nil {
			continue
		}
		for j, n := range o {
			if n > 0 {
				b = append(binary.AppendUvarint(b, n), byte(i), byte(j))
			}
		}
	}
	return b, nil
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler.
func (h *Histogram) UnmarshalBinary(b []byte) error {
	*h = Histogram{}
	micros, at := binary.Uvarint(b)
	h.micros = micros
	for at > 0 && at < len(b) {
		n, size := binary.Uvarint(b[at:])
		if at += size; size <= 0 || at+2 > len(b) || b[at] >= histogramOctaves || b[at+1] >= octaveBuckets {
			return errHistogram
		}
		o := &h.octaves[b[at]]
		if *o == nil {
			*o = new([octaveBuckets]uint64)
		}
		(*o)[b[at+1]] += n
		h.count, at = h.count+n, at+2
	}
	if at <= 0 {
		return errHistogram
	}
	return nil
}

var errHistogram = errors.New("malformed histogram")

// Clone returns a copy that shares no memory.
func (h *Histogram) Clone() *Histogram {
	c := new(Histogram)
	c.Merge(h)
	return c
}
