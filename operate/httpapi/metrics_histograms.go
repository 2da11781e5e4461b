package httpapi

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"broker/core"
)

// The histograms of each queue. Their bucket bounds are also bounds of core.Histogram, so that every job is counted in
// the right bucket.
var (
	waitDesc = describe("wait_seconds", "Time from ready to leased, since the start.", "queue")
	runDesc  = describe("run_seconds", "Time from leased to done or failed, since the start.", "queue")

	bounds = powersOfFour(1024*time.Microsecond, 14)
)

// powersOfFour returns n bounds, from 1 ms to 19 h. Each is four times the previous one.
func powersOfFour(first time.Duration, n int) (all []time.Duration) {
	for range n {
		all = append(all, first)
		first *= 4
	}
	return all
}

// histogramPage is the number of queues in one request to the broker, which copies histograms under its lock.
const histogramPage = 50

// readHistograms reads the histograms of queues. The last element is for all other queues together.
func readHistograms(b core.Broker, client core.ClientID, queues []core.QueueInfo) []core.Histograms {
	all := make([]core.Histograms, len(queues)+1)
	var ops []core.Op
	var replies []core.Reply
	for i := range all {
		op := &core.ReadHistograms{Tag: uint64(i), Rest: i == len(queues)}
		if !op.Rest {
			op.Queue = queues[i].Name
		}
		if ops = append(ops, op); len(ops) < histogramPage && !op.Rest {
			continue
		}
		replies = b.Do(client, ops, replies[:0])
		for k := range replies {
			if r := &replies[k]; r.Answer != nil {
				all[r.Tag] = r.Histograms
			}
		}
		ops = ops[:0]
	}
	return all
}

// histograms collects the wait and run times of queues, and of all other queues together.
func (s scrape) histograms(queues []core.QueueInfo, all []core.Histograms) {
	for i, h := range all {
		queue := otherQueues
		if i < len(queues) {
			queue = label(queues[i].Name)
		}
		s.histogram(waitDesc, h.Wait, queue)
		s.histogram(runDesc, h.Run, queue)
	}
}

func (s scrape) histogram(d *prometheus.Desc, h *core.Histogram, queue string) {
	if h == nil || h.Count() == 0 {
		return
	}
	buckets := make(map[float64]uint64, len(bounds))
	for _, bound := range bounds {
		buckets[bound.Seconds()] = h.Below(bound)
	}
	s.out <- prometheus.MustNewConstHistogram(d, h.Count(), h.Sum().Seconds(), buckets, queue)
}
