package qless

import (
	"strconv"
	"testing"

	"broker/access"
	"broker/core"
)

// BenchmarkStart loads the state of a front-end with many jobs.
func BenchmarkStart(b *testing.B) {
	const jobs = 30_000
	s, c := setup(b)
	for i := range jobs {
		const data = `{"customer": "a name", "amount": 12}`
		c.call("put", strconv.Itoa(i+1), "me", "q", "job-"+strconv.Itoa(i), "K", data, "0", "tags", `["t"]`)
	}
	b.ReportAllocs()
	for b.Loop() {
		f := New(access.Unrestricted(s.Broker, core.Qless), Options{})
		if err := f.Start(); err != nil {
			b.Fatal(err)
		}
		f.client.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/jobs, "ns/job")
}
