package store

import (
	"time"

	dto "github.com/prometheus/client_model/go"

	"broker/core"
)

// SyncLatency is the distribution of the log's sync times since Open; empty after Close.
func (s *Store) SyncLatency() (l core.Latency) {
	if !s.use.enter() {
		return l
	}
	defer s.use.leave()
	_ = s.latch.Run("read metrics", func() error { // without metrics there is nothing to return
		var m dto.Metric
		if h := s.db.Metrics().LogWriter.FsyncLatency; h == nil || h.Write(&m) != nil {
			return nil
		}
		l = latency(m.GetHistogram())
		return nil
	})
	return l
}

// latency converts Pebble's histogram, which counts nanoseconds.
func latency(h *dto.Histogram) core.Latency {
	l := core.Latency{
		Count: h.GetSampleCount(), Seconds: h.GetSampleSum() / float64(time.Second), UpTo: make(map[float64]uint64),
	}
	for _, b := range h.GetBucket() {
		l.UpTo[b.GetUpperBound()/float64(time.Second)] = b.GetCumulativeCount()
	}
	return l
}
