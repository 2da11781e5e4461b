package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"broker/core"
)

// NewestFormat is the newest format of entries and stores that this program reads. A format is what a reader must
// know. The first byte of an entry is its format, so a program that does not know it notices at once; a store has the
// number of the newest format that anything in it needed, and a program that does not know that format does not open
// it.
//
//	1  the first
//	2  as 1: a node can tell from its store which format is in force
//	3  as 2: a node that wins an election waits until the lease of the previous leader has ended
//	4  the features that say so below
//	5  as 4, with the features that say so
//
// The leader of a cluster writes the newest format that all members read. Data that this format cannot carry is
// refused: by the machine, with an error to the client, and should the machine overlook it, by AppendEntry. Nothing
// is ever left out of an entry.
const NewestFormat = 5

// Feature is something that is stored and that not every format has.
type Feature struct {
	Name   string
	Format int // the first that has it

	job, status uint64               // its fields in the record of a job or a status
	ofJob       func(*core.Job) bool // whether a job has a value that readers of earlier formats would misread
	meta        string               // prefix of the names of its metadata entries
	document    string               // prefix of the names of its documents

	// in, if not nil, reports whether the value of such a metadata entry has the feature; other values have the first
	// format.
	in func(value []byte) bool
}

// valuesFormat is the format of all features that are values of older fields.
const valuesFormat = 4

// versionFormat is the first format that has versions of workers, in statuses and timelines.
const versionFormat = 5

// Names of features that have several parts.
const (
	featureTallies = "counts of releases, timeouts, burials and kicks"
	featureMoved   = "jobs that have moved by a rule"
	featureLogs    = "logs of jobs"
)

// Features are all features, in the order of their formats: the rows of the tables of jobs and statuses that name one,
// and what has no row. A metadata entry of the core that is missing here, and that not all formats have, cannot be
// encoded at all: see MetaFormat. To add one: a new field is a new row of its table; raise NewestFormat, unless no
// release has it, and name the format in the row, or here, and in docs/versions.md.
var Features = featuresOf([]Feature{
	{Name: "priorities of more than 32 bits", Format: valuesFormat, ofJob: hasWidePriority},
	{Name: "values that a submission chose itself", Format: valuesFormat, ofJob: hasOwnValues},
	{Name: featureLogs, Format: 4, document: core.LogsPrefix},
	{Name: "limits and sharing of queues", Format: 4, meta: "core/shape/"},
	{Name: "limits of several queues", Format: 4, meta: "core/limit/"},
	{Name: "used rates", Format: 4, meta: "core/rate/"},
	{Name: "policies", Format: 4, meta: "core/policy/"},
	{Name: "unique windows", Format: 4, meta: "core/window/"},
	{Name: "rules that move jobs", Format: 4, meta: "core/queue/", in: hasRule},
	{Name: "ends of jobs that go on in later steps", Format: 5, meta: "core/ended/"},
})

// featuresOf adds the features of fields to those without.
func featuresOf(all []Feature) []Feature {
	of := func(r *row) *Feature {
		for i := range all {
			if all[i].Name == r.feature {
				return &all[i]
			}
		}
		all = append(all, Feature{Name: r.feature, Format: r.format})
		return &all[len(all)-1]
	}
	for i := range jobTable.rows {
		if r := &jobTable.rows[i]; r.feature != "" {
			of(r).job |= 1 << i
		}
	}
	for i := range statusTable.rows {
		if r := &statusTable.rows[i]; r.feature != "" {
			of(r).status |= 1 << i
		}
	}
	slices.SortStableFunc(all, func(a, b Feature) int { return a.Format - b.Format })
	return all
}

// hasWidePriority: earlier formats have priorities of 32 bits.
func hasWidePriority(j *core.Job) bool { return j.Priority != int64(int32(j.Priority)) }

// hasOwnValues: Own is stored in the number of Exhausted.
func hasOwnValues(j *core.Job) bool { return j.Own != 0 }

// firstMeta are the prefixes of the names of the core's metadata entries that all formats have.
var firstMeta = [...]string{
	"core/seq", "core/totals", "core/series/", "core/history/", "core/queue/", "core/schedule/",
	"core/schedule_position/", "core/group/",
}

// noFormat is the format of data that no format has.
const noFormat = NewestFormat + 1

// formatOfJob returns the first format that has these fields of a job and the values of others.
func formatOfJob(fields uint64, j *core.Job) int {
	needs := 1
	if hasWidePriority(j) || hasOwnValues(j) {
		needs = valuesFormat
	}
	return jobTable.formatOf(fields, needs)
}

// StoredJobFormat returns the first format that can carry a job, given in its encoding too: it does not look at all of
// the job's fields again.
func StoredJobFormat(stored []byte, j *core.Job) int {
	return formatOfJob(storedFields(stored), j)
}

// StoredStatusFormat returns the first format that can carry a status, given in its encoding.
func StoredStatusFormat(stored []byte) int { return statusTable.formatOf(storedFields(stored), 1) }

// storedFields is the set of fields of a valid record.
func storedFields(b []byte) uint64 {
	d := decoder{b: b}
	d.version()
	return d.uvarint()
}

// MetaFormat returns the first format that can carry a metadata entry. Every format can remove one.
func MetaFormat(m *core.MetaEntry) int {
	const ofCore = "core/"
	if m.Value == nil || !strings.HasPrefix(m.Name, ofCore) {
		return 1
	}
	for i := range Features {
		f := &Features[i]
		if f.meta != "" && strings.HasPrefix(m.Name, f.meta) && (f.in == nil || f.in(m.Value)) {
			return f.Format
		}
	}
	if strings.HasPrefix(m.Name, scheduleMeta) {
		return scheduleFormat(m.Value)
	}
	for _, prefix := range firstMeta {
		if strings.HasPrefix(m.Name, prefix) {
			return 1
		}
	}
	return noFormat
}

// DocumentFormat is MetaFormat for a document.
func DocumentFormat(m *core.MetaEntry) int {
	for i := range Features {
		if f := &Features[i]; f.document != "" && m.Value != nil && strings.HasPrefix(m.Name, f.document) {
			return f.Format
		}
	}
	return 1
}

// hasRule reports whether the settings of a queue have a core.SpentRule.
func hasRule(value []byte) bool {
	var settings struct {
		Spent json.RawMessage `json:"spent"`
	}
	return json.Unmarshal(value, &settings) != nil || settings.Spent != nil
}

// scheduleMeta is the prefix of the names of the definitions of schedules, which have a job.
const scheduleMeta = "core/schedule/"

// scheduleFormat returns the first format that can carry the definition of a schedule.
func scheduleFormat(value []byte) int {
	var definition struct {
		Job []byte `json:"job"`
	}
	j := new(core.Job)
	if json.Unmarshal(value, &definition) != nil {
		return noFormat
	}
	if _, _, err := DecodeJob(definition.Job, 0, j, nil, nil); err != nil {
		return noFormat
	}
	return StoredJobFormat(definition.Job, j)
}

// ErrOldFormat is returned for data that the format of an entry cannot carry.
var ErrOldFormat = errors.New("the format in force cannot carry this")

// tooNew returns why data cannot be in an entry.
func tooNew(what string, needs, format int) error {
	if needs > NewestFormat {
		return fmt.Errorf("%s has a part that no format lists: %w", what, ErrOldFormat)
	}
	return fmt.Errorf("%s needs format %d, and format %d is in force: %w", what, needs, format, ErrOldFormat)
}

// LackedByJob returns a feature that a job needs and a format lacks; nil: there is none.
func LackedByJob(format int, j *core.Job) *Feature {
	fields := jobFields(j, false)
	return lacked(format, func(f *Feature) bool { return fields&f.job != 0 || f.ofJob != nil && f.ofJob(j) })
}

// LackedByStatus is LackedByJob for a status.
func LackedByStatus(format int, s *Status) *Feature {
	fields := statusFields(s)
	return lacked(format, func(f *Feature) bool { return fields&f.status != 0 })
}

// LackedByMeta is LackedByJob for metadata entries whose names begin with a prefix, of whatever value.
func LackedByMeta(format int, prefix string) *Feature {
	return lacked(format, func(f *Feature) bool { return f.meta != "" && strings.HasPrefix(prefix, f.meta) })
}

// LackedByDocument is LackedByMeta for documents.
func LackedByDocument(format int, prefix string) *Feature {
	return lacked(format, func(f *Feature) bool { return f.document != "" && strings.HasPrefix(prefix, f.document) })
}

// lacked returns the first feature that a format lacks and that is needed.
func lacked(format int, needed func(*Feature) bool) *Feature {
	for i := range Features {
		if f := &Features[i]; f.Format > format && needed(f) {
			return f
		}
	}
	return nil
}
