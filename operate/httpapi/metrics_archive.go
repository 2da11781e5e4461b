package httpapi

import "broker/core"

// The metrics of an archive.
var (
	archiveLagDesc = describe("archive_lag_seconds",
		"Age of the oldest commit that could not be restored from the archive.")
	archiveQueueDesc    = describe("archive_queue_bytes", "Memory of commits that wait to be shipped to the archive.")
	archiveShippedDesc  = describe("archive_shipped_bytes_total", "Bytes of commits that were shipped to the archive.")
	archiveBasesDesc    = describe("archive_base_copies_total", "Copies of the store that were made in the archive.")
	archiveOverflowDesc = describe("archive_overflows_total",
		"Times that the archive's queue was full, so that a new copy of the store had to close the gap.")
	archiveFailuresDesc = describe("archive_failures_total", "Attempts to write to the archive that failed.")
	archiveFailingDesc  = describe("archive_failing", "1 while the archive cannot be written.")
)

// archive collects the state of the archive, if the broker has one.
func (s scrape) archive(a *core.Archive) {
	if a == nil {
		return
	}
	s.gauge(archiveLagDesc, a.Lag.Seconds())
	s.gauge(archiveQueueDesc, float64(a.Queued))
	s.gauge(archiveFailingDesc, truth(a.Error != ""))
	s.counter(archiveShippedDesc, a.Shipped)
	s.counter(archiveBasesDesc, a.Bases)
	s.counter(archiveOverflowDesc, a.Overflows)
	s.counter(archiveFailuresDesc, a.Failures)
}
