package faktory

import "testing"

func BenchmarkPush(b *testing.B) {
	f := &Frontend{}
	line := []byte(`{"jid":"Wn4hUVbUsOlwTKoA","queue":"default","jobtype":"SomeJob","args":[1,"string",3.5],` +
		`"created_at":"2030-01-01T00:00:00.123456789Z","retry":25}`)
	var u workUnit
	var n names
	b.ReportAllocs()
	for b.Loop() {
		if err := parseWorkUnit(line, &u); err != nil {
			b.Fatal(err)
		}
		if _, err := f.newPushedJob(&u, &n, now); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFetchedJob(b *testing.B) {
	f := &Frontend{}
	job := mustBuild(b, f, `{"jid":"Wn4hUVbUsOlwTKoA","queue":"default","jobtype":"SomeJob","args":[1,"string",3.5],`+
		`"created_at":"2030-01-01T00:00:00.123456789Z","retry":25}`)
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = f.appendJob(out[:0], job, jobState{enqueuedAt: now})
	}
}
