package service

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"runtime/pprof"

	"broker/access"
)

// SupportPart is a file of a support bundle that the program adds.
type SupportPart struct {
	Name  string
	Write func(io.Writer) error
}

// SupportBundle writes an archive for the analysis of problems: the settings without secrets, counts, queues, the state
// of the store, operations, goroutines, and the parts that the program adds (metrics and the recent log). It contains
// names of queues, but no bodies of jobs.
func (s *Service) SupportBundle(ctx context.Context, caller Caller, w io.Writer) error {
	if err := caller.mayAll(access.Admin); err != nil {
		return err
	}
	compressed := gzip.NewWriter(w)
	archive := tar.NewWriter(compressed)
	for _, part := range s.supportParts(ctx, caller) {
		var b bytes.Buffer
		if err := part.Write(&b); err != nil {
			b.Reset()
			fmt.Fprintf(&b, "not available: %v\n", err)
		}
		head := &tar.Header{
			Name: "broker-support/" + part.Name, Mode: 0o600, Size: int64(b.Len()), ModTime: s.Now().Time(),
		}
		if err := archive.WriteHeader(head); err != nil {
			return err
		}
		if _, err := archive.Write(b.Bytes()); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	if err := compressed.Close(); err != nil {
		return err
	}
	c := s.open(caller)
	defer c.Close()
	return c.committed(ctx, s.note(c, AuditEntry{Action: "support"}))
}

func (s *Service) supportParts(ctx context.Context, caller Caller) []SupportPart {
	object := func(name string, read func() (any, error)) SupportPart {
		return SupportPart{name, func(w io.Writer) error {
			v, err := read()
			if err != nil {
				return err
			}
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(v)
		}}
	}
	parts := []SupportPart{
		object("summary.json", func() (any, error) { return s.Summary(ctx, caller) }),
		object("settings.json", func() (any, error) { return s.Settings(caller) }),
		object("storage.json", func() (any, error) { return s.Storage(caller) }),
		object("operations.json", func() (any, error) { return s.Operations(caller) }),
		object("queues.json", func() (any, error) {
			list, _, err := s.Queues(ctx, caller, QueueFilter{Sort: "-ready", Limit: 1000})
			return list, err
		}),
		object("series.json", func() (any, error) { return s.Series(ctx, caller, SeriesQuery{Step: "1m"}) }),
		{"goroutines.txt", func(w io.Writer) error { return pprof.Lookup("goroutine").WriteTo(w, 1) }},
		{"build.txt", func(w io.Writer) error {
			info, ok := debug.ReadBuildInfo()
			if ok {
				_, err := io.WriteString(w, info.String())
				return err
			}
			return nil
		}},
	}
	return append(parts, s.o.Support...)
}
