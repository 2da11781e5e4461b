package console

import (
	"strconv"
	"strings"

	"broker/access"
	"broker/operate/service"
)

type storageData struct {
	Storage *service.Storage // nil: nothing is stored
	Figures []figure
	Levels  []storageLevel
	Facts   []fact
	Archive []fact // empty: there is none
	Today   string
	Admin   bool
	Problem string
	Dir     string
}

type storageLevel struct {
	service.StorageLevel
	Most uint64 // bytes of the largest level
}

func storagePage(r *request) (*view, error) {
	st, err := r.service.Storage(r.caller)
	if err != nil && !service.IsCode(err, service.CodeUnsupported) {
		return nil, err
	}
	d := &storageData{
		Storage: st, Today: r.console.options.Now().UTC().Format("2006-01-02"),
		Admin: r.caller.Current().MayAll(access.Admin),
	}
	if err == nil {
		d.fill(st)
	} else {
		d.Storage = nil
	}
	return &view{page: "storage", title: "Storage", nav: "storage", data: d}, nil
}

func (d *storageData) fill(st *service.Storage) {
	free := "–"
	if st.FreeBytes > 0 {
		free = size(st.FreeBytes)
	}
	d.Figures = []figure{
		{Label: "on disk", Value: size(st.DiskBytes), Note: size(st.LiveBytes) + " in tables"},
		{Label: "free on the disk", Value: free},
		{Label: "log", Value: size(st.LogBytes), Note: "replayed at the start"},
		cacheFigure(st),
		{
			Label: "commit p50", Value: quantile(st.Commits, func(h *service.Histogram) float64 { return h.P50S }),
			Note: "with its sync",
		},
		{
			Label: "commit p99", Value: quantile(st.Commits, func(h *service.Histogram) float64 { return h.P99S }),
			Note: "with its sync",
		},
	}
	var most uint64
	for _, l := range st.Levels {
		most = max(most, l.Bytes)
	}
	for _, l := range st.Levels {
		if l.Tables == 0 {
			continue
		}
		d.Levels = append(d.Levels, storageLevel{l, most})
	}
	d.Facts = []fact{
		{Label: "Commits", Value: countOf(st.Commits)},
		{Label: "Syncs", Value: num(st.Syncs.Count), Note: meanSync(st.Syncs)},
		{Label: "Written, not in a table yet", Value: size(st.MemBytes)},
		{Label: "Flushes", Value: num(st.Flushes), Note: size(st.FlushedBytes)},
		{Label: "Compactions", Value: num(st.Compactions), Note: size(st.CompactedBytes)},
		{Label: "Due for compaction", Value: size(st.CompactionDebt)},
		{Label: "Tables a lookup may read", Value: num(st.ReadAmplification)},
		{Label: "Write stalls", Value: num(st.WriteStalls), Bad: st.WriteStalls > 0},
	}
	if st.Archive != nil {
		d.Archive = archiveFacts(st.Archive)
	}
}

// archiveLate is the lag in seconds above which the archive counts as behind; it is longer than the time between two
// writes.
const archiveLate = 60

func archiveFacts(a *service.Archive) []fact {
	facts := []fact{
		{Label: "Folder", Value: a.Dir, Note: size(a.Bytes)},
		{
			Label: "Behind by", Value: seconds(a.LagS), Note: size(uint64(max(a.Queued, 0))) + " queued",
			Bad: a.LagS > archiveLate,
		},
	}
	if a.LagS == 0 {
		facts[1].Value = "nothing"
	}
	if a.Error != "" {
		facts = append(facts, fact{Label: "Cannot be written", Value: a.Error, Bad: true})
	}
	if a.Earliest != nil {
		facts = append(facts,
			fact{Label: "Moments can be restored since", Value: a.Earliest.UTC().Format("2006-01-02 15:04:05 UTC")})
	}
	switch {
	case a.Copying:
		facts = append(facts, fact{Label: "Copy of the store", Value: "is being made"})
	case a.BaseAt != nil:
		facts = append(facts,
			fact{Label: "Newest copy of the store", Value: a.BaseAt.UTC().Format("2006-01-02 15:04:05 UTC")})
	}
	return append(facts, fact{Label: "Shipped", Value: num(a.Commits) + " commits", Note: size(a.Shipped)},
		fact{Label: "Gaps closed by a copy", Value: num(a.Overflows), Bad: a.Overflows > 0})
}

func cacheFigure(st *service.Storage) figure {
	if st.HitRate == 0 {
		return figure{Label: "cache", Value: "–", Note: size(st.CacheBytes) + " in use"}
	}
	return figure{
		Label: "cache", Value: strconv.FormatFloat(100*st.HitRate, 'f', 1, 64), Unit: "%",
		Note: "found in " + size(st.CacheBytes),
	}
}

func quantile(h *service.Histogram, of func(*service.Histogram) float64) string {
	if h == nil || h.Count == 0 {
		return "–"
	}
	return seconds(of(h))
}

func countOf(h *service.Histogram) string {
	if h == nil {
		return "0"
	}
	return num(h.Count)
}

func meanSync(s *service.Syncs) string {
	if s.Count == 0 {
		return ""
	}
	return seconds(s.SumS/float64(s.Count)) + " on average"
}

// changeStorage starts a backup or a check.
func changeStorage(r *request) (*view, error) {
	switch r.PostFormValue("do") {
	case "check":
		if _, err := r.service.StartCheck(r.Context(), r.caller); err != nil {
			return nil, err
		}
		return r.back("storage", "The check has begun.")
	case "backup":
		dir := strings.TrimSpace(r.PostFormValue("dir"))
		op, err := r.service.StartBackup(r.Context(), r.caller, dir)
		if err == nil {
			op, err = r.service.WaitOperation(r.Context(), r.caller, op.ID, bulkWait)
		}
		if err == nil && op.Error != "" {
			err = invalid("", op.Error)
		}
		switch {
		case service.IsCode(err, service.CodeInvalid):
			return again(r, err, storagePage, func(d *storageData, reason string) { d.Problem, d.Dir = reason, dir })
		case err != nil:
			return nil, err
		case op.FinishedAt == nil:
			return r.back("storage", "The backup has begun.")
		}
		return r.back("storage", "The backup is in "+dir+".")
	}
	return nil, invalid("do", "choose a backup or a check")
}
