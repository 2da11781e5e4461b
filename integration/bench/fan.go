package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

const (
	fanQueue  = "fan"
	fanBatch  = 1000 // jobs of a submission
	quietLoad = 2 * time.Second
)

// fanResult is how long other clients wait while one client makes many jobs wait for one job, and removes that job.
type fanResult struct {
	dependents           int
	quiet, build, broken bystanders
}

// bystanders is the latency of submissions of other clients.
type bystanders struct {
	p50, p99, most time.Duration
	took           time.Duration // the whole phase
}

// fans measures the submissions of eight clients, each with one at a time, beside one client that builds and breaks a
// fan.
func (l *lab) fans(w io.Writer) error {
	out := grid{{
		"protocol", "durability", "dependents", "p50 quiet", "p99", "p50 while built", "p99", "longest", "built in",
		"p50 while broken", "p99", "longest", "broken in",
	}}
	for _, p := range l.protocols() {
		for _, durability := range l.durabilities {
			r, err := l.besideFan(p, durability)
			if err != nil {
				return fmt.Errorf("%d dependents beside %s: %w", l.fan, p.name, err)
			}
			l.facts.fans = append(l.facts.fans, r)
			row := []string{p.name, durability, thousands(float64(r.dependents))}
			for _, d := range []time.Duration{
				r.quiet.p50, r.quiet.p99, r.build.p50, r.build.p99, r.build.most, r.build.took,
				r.broken.p50, r.broken.p99, r.broken.most, r.broken.took,
			} {
				row = append(row, span(float64(d)))
			}
			out = append(out, row)
		}
	}
	out.print(w)
	return nil
}

func (l *lab) besideFan(p protocol, durability string) (fanResult, error) {
	r := fanResult{dependents: l.fan}
	s, end, err := l.open(p, durability)
	if err != nil {
		return r, err
	}
	defer end()
	f := &fan{api: "http://" + s.HTTP + "/api/v1/"}
	for _, phase := range []struct {
		into *bystanders
		run  func() error
	}{
		{&r.quiet, func() error { time.Sleep(quietLoad); return nil }},
		{&r.build, func() error { return f.build(l.fan) }},
		{&r.broken, f.breakUp},
	} {
		if *phase.into, err = s.beside(phase.run); err != nil {
			return r, err
		}
	}
	return r, nil
}

// beside measures submissions until run has ended.
func (s *subject) beside(run func() error) (bystanders, error) {
	t := newTally(1 << 30) // more than there is time for
	d := s.protocol.dialect
	producers, err := connectMany(s.addr, t.clients, inSize, d, func() session { return d.producer(t, 1) })
	if err != nil {
		return bystanders{}, err
	}
	defer producers.close()
	var over atomic.Bool
	failed := make(chan error, 1)
	begin := nanotime()
	go func() { // ends before runAlone does, unless that fails
		defer over.Store(true)
		failed <- run()
	}()
	if err := runAlone(producers, runLimit, over.Load); err != nil {
		return bystanders{}, err
	}
	b := bystanders{took: time.Duration(nanotime() - begin)}
	b.p50, b.p99, b.most = t.latency.quantile(0.5), t.latency.quantile(0.99), t.latency.longest()
	return b, <-failed
}

// fan is a client of the API that makes jobs wait for one job.
type fan struct {
	api  string
	head string // id of that job
}

// build submits a job and n jobs that wait for it.
func (f *fan) build(n int) error {
	var head struct{ ID string }
	if err := f.ask(http.MethodPost, "jobs", `{"queue":"`+fanQueue+`"}`, &head); err != nil {
		return err
	}
	f.head = head.ID
	job := `{"queue":"` + fanQueue + `","on_broken":"drop","after":["` + f.head + `"]}`
	for ; n > 0; n -= fanBatch {
		jobs := strings.TrimSuffix(strings.Repeat(job+",", min(n, fanBatch)), ",")
		if err := f.ask(http.MethodPost, "jobs", `{"jobs":[`+jobs+`]}`, nil); err != nil {
			return err
		}
	}
	return nil
}

// breakUp removes the job, and waits until all jobs that waited for it are gone.
func (f *fan) breakUp() error {
	if err := f.ask(http.MethodDelete, "jobs/"+f.head, "", nil); err != nil {
		return err
	}
	for {
		var q struct{ Blocked int }
		if err := f.ask(http.MethodGet, "queues/"+fanQueue, "", &q); err != nil || q.Blocked == 0 {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// ask sends a request and decodes the answer; nil: it is not needed.
func (f *fan) ask(method, path, body string, into any) error {
	req, err := http.NewRequestWithContext(context.Background(), method, f.api+path, bytes.NewBufferString(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it has been read
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return err
	case answer.StatusCode == http.StatusNotFound && method == http.MethodGet: // the queue has ended with its last job
		return nil
	case answer.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("%s %s is answered %s: %.200s", method, path, answer.Status, text)
	case into == nil:
		return nil
	}
	return json.Unmarshal(text, into)
}
