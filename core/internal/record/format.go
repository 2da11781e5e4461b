package record

import (
	"encoding/json"
	"errors"
	"fmt"
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

// Pseudo-fields of a job: values of older fields that readers of older formats would misread. They are not in the set
// of fields on disk, so jobKnown must stay below them.
const (
	jobWide = 1 << 62 // Priority has more than 32 bits
	jobOwn  = 1 << 63 // Own, in jobExhausted
)

// Fields that all formats have.
const (
	jobFirst    = jobSeqOrder - 1
	statusFirst = statusReleases - 1
)

// Feature is something that is stored and that not every format has.
type Feature struct {
	Name   string
	Format int // the first that has it

	job, status uint64 // its fields in the record of a job or a status
	meta        string // prefix of the names of its metadata entries
	document    string // prefix of the names of its documents

	// in, if not nil, reports whether the value of such a metadata entry has the feature; other values have the first
	// format.
	in func(value []byte) bool
}

// Features are all features, in the order of their formats. A field or a metadata entry of the core that is missing
// here, and that not all formats have, cannot be encoded at all: see formatOf. To add one: a new field takes the next
// bit of its record; raise NewestFormat, unless no release has it, and name the format here and in docs/versions.md.
var Features = [...]Feature{
	{Name: "priorities of more than 32 bits", Format: 4, job: jobWide},
	{Name: "places by number", Format: 4, job: jobSeqOrder},
	{Name: "counts of releases, timeouts, burials and kicks", Format: 4, job: jobTallies, status: statusTally},
	{Name: "values that a submission chose itself", Format: 4, job: jobOwn},
	{Name: "on_broken", Format: 4, job: jobOnBroken},
	{Name: "cost", Format: 4, job: jobCost},
	{Name: "copies of finished jobs", Format: 4, job: jobRerunOf},
	{Name: "jobs submitted with their last failure", Format: 4, job: jobFailure},
	{Name: "jobs that have moved by a rule", Format: 4, status: statusQueue | statusMovedFrom},
	{Name: "requests to stop a running job", Format: 4, status: statusStopAfter},
	{Name: "logs of jobs", Format: 4, status: statusLogChunks, document: core.LogsPrefix},
	{Name: "limits and sharing of queues", Format: 4, meta: "core/shape/"},
	{Name: "limits of several queues", Format: 4, meta: "core/limit/"},
	{Name: "used rates", Format: 4, meta: "core/rate/"},
	{Name: "policies", Format: 4, meta: "core/policy/"},
	{Name: "unique windows", Format: 4, meta: "core/window/"},
	{Name: "rules that move jobs", Format: 4, meta: "core/queue/", in: hasRule},
	{Name: "ends of extended leases", Format: 5, status: statusLeaseUntil},
	{Name: "ends of jobs that go on in later steps", Format: 5, meta: "core/ended/"},
}

// firstMeta are the prefixes of the names of the core's metadata entries that all formats have.
var firstMeta = [...]string{
	"core/seq", "core/totals", "core/series/", "core/history/", "core/queue/", "core/schedule/",
	"core/schedule_position/", "core/group/",
}

// knownFields are the fields that the readers of a format know.
type knownFields struct{ job, status uint64 }

// knownIn has the fields by format.
var knownIn = func() (all [NewestFormat + 1]knownFields) {
	for format := 1; format <= NewestFormat; format++ {
		all[format] = knownFields{job: jobFirst, status: statusFirst}
		for i := range Features {
			if f := &Features[i]; f.Format <= format {
				all[format].job |= f.job
				all[format].status |= f.status
			}
		}
	}
	return all
}()

// noFormat is the format of data that no format has.
const noFormat = NewestFormat + 1

// formatOfJob returns the first format that has these fields of a job.
func formatOfJob(fields uint64) int {
	if fields&^jobFirst == 0 {
		return 1
	}
	for format := 1; format <= NewestFormat; format++ {
		if fields&^knownIn[format].job == 0 {
			return format
		}
	}
	return noFormat
}

// formatOfStatus returns the first format that has these fields of a status.
func formatOfStatus(fields uint64) int {
	if fields&^statusFirst == 0 {
		return 1
	}
	for format := 1; format <= NewestFormat; format++ {
		if fields&^knownIn[format].status == 0 {
			return format
		}
	}
	return noFormat
}

// pseudoFields are the values of older fields that not all formats have.
func pseudoFields(j *core.Job) uint64 {
	return flag(j.Priority != int64(int32(j.Priority)), jobWide) | flag(j.Own != 0, jobOwn)
}

// StoredJobFormat returns the first format that can carry a job, given in its encoding too: it does not look at all of
// the job's fields again.
func StoredJobFormat(stored []byte, j *core.Job) int {
	return formatOfJob(storedFields(stored) | pseudoFields(j))
}

// StoredStatusFormat returns the first format that can carry a status, given in its encoding.
func StoredStatusFormat(stored []byte) int { return formatOfStatus(storedFields(stored)) }

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
	return lacked(format, func(f *Feature) bool { return (jobFields(j, false)|pseudoFields(j))&f.job != 0 })
}

// LackedByStatus is LackedByJob for a status.
func LackedByStatus(format int, s *Status) *Feature {
	return lacked(format, func(f *Feature) bool { return statusFields(s)&f.status != 0 })
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
