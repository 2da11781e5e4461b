package record

import (
	"encoding/binary"
	"unsafe"

	"broker/core"
)

// InlineBytes is the size of the largest body that is stored within the record of its job. A larger body has a key of
// its own, and a Change that removes the job must state the size. The limit is small so that a start, which reads all
// records, stays fast.
const InlineBytes = 1 << 10

// jobTable has the fields of a job, which follow the queue.
var jobTable = newTable[core.Job]([]row{
	{name: "Body", format: 1, kind: byCode}, // the rest of the record; written last
	{name: "Origin", format: 1, kind: byCode},
	{name: "CreatedAt", format: 1, kind: byCode},
	{name: "UUID", format: 1, kind: byCode}, // the ID as 16 bytes, if it is a UUID in lower-case text form
	{name: "ID", format: 1, kind: byCode},   // any other ID
	{name: "BodyBytes", format: 1, kind: byCode},
	{name: "Type", format: 1, kind: byCode},
	{name: "Format", format: 1},
	{name: "LeaseFor", format: 1},
	{name: "MaxFails", format: 1},
	{name: "Backoff", format: 1},
	{name: "Exhausted", format: 1, kind: isExhausted, also: "Own"},
	{name: "LeaseEnd", format: 1},
	{name: "DeadFor", format: 1},
	{name: "Attributes", format: 1},
	{name: "Priority", format: 1, low: core.MinPriority, high: core.MaxPriority},
	{name: "ReadyAt", format: 1, after: "CreatedAt"},
	{name: "ExpiresAt", format: 1, after: "CreatedAt"},
	{name: "StartBefore", format: 1, after: "CreatedAt"},
	{name: "MaxAttempts", format: 1},
	{name: "UniqueKey", format: 1},
	{name: "Unique", format: 1},
	{name: "UniqueUntil", format: 1, after: "CreatedAt"},
	{name: "UniqueStart", format: 1},
	{name: "RetainUntil", format: 1, after: "CreatedAt"},
	{name: "RetainFor", format: 1},
	{name: "Ephemeral", format: 1},
	{name: "ScheduledOrder", format: 1},
	{name: "Parent", format: 1},
	{name: "After", format: 1},
	{name: "Batch", format: 1},
	{name: "CallbackFor", format: 1},
	{name: "PriorFails", format: 1},
	{name: "Rewritten", format: 1, kind: byCode}, // see Parts; no value
	{name: "Tags", format: 1},
	{name: "Schedule", format: 1},
	{name: "Timeline", format: 1, high: core.MaxTimeline},
	{name: "Trace", format: 1},
	{name: "SeqOrder", format: 4, feature: "places by number"},
	{name: "Tallies", format: 4, feature: featureTallies},
	{name: "OnBroken", format: 4, feature: "on_broken", high: int64(core.BrokenDrops)},
	{name: "Cost", format: 4, feature: "cost"},
	{name: "Rare.RerunOf", format: 4, feature: "copies of finished jobs"},
	{name: "Failure", format: 4, feature: "jobs submitted with their last failure"},
	{name: "Rare.Deadline", format: 5, feature: "deadlines"},
})

// The fields by code.
const (
	jobBody = 1 << iota
	jobOrigin
	jobCreatedAt
	jobUUID
	jobID
	jobBodyBytes
	jobType

	jobFirst = 7 // fields of every job, which code reads and writes
)

var jobRewritten, jobRare = jobTable.bit("Rewritten"), jobTable.within("Rare")

// HasOwnBody reports whether the body of j is stored under a key of its own.
func HasOwnBody(j *core.Job) bool { return len(j.Body) > InlineBytes }

// AppendJob encodes j without its Seq, which is in the key, and returns the first format that can carry j. Instants
// are encoded relative to CreatedAt. In stored, only Rewritten matters.
func AppendJob(dst []byte, j *core.Job, stored Parts) ([]byte, int) {
	id, isUUID := packUUID(j.ID)
	f := jobFields(j, isUUID) | flag(stored&Rewritten != 0, jobRewritten)
	dst = append(dst, Version)
	dst = binary.AppendUvarint(dst, f)
	dst = appendText(dst, j.Queue)
	if f&jobOrigin != 0 {
		dst = binary.AppendUvarint(dst, uint64(j.Origin))
	}
	if f&jobCreatedAt != 0 {
		dst = binary.AppendVarint(dst, int64(j.CreatedAt))
	}
	if f&jobUUID != 0 {
		dst = append(dst, id[:]...)
	}
	if f&jobID != 0 {
		dst = appendText(dst, j.ID)
	}
	if f&jobBodyBytes != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(j.Body)))
	}
	if f&jobType != 0 {
		dst = appendText(dst, j.Type)
	}
	if rest := f >> jobFirst << jobFirst; rest != 0 {
		dst = jobTable.append(dst, unsafe.Pointer(j), rest, j.Seq)
	}
	if f&jobBody != 0 {
		dst = append(dst, j.Body...)
	}
	return dst, formatOfJob(f, j)
}

// jobFields returns the fields of a job that are set.
func jobFields(j *core.Job, isUUID bool) uint64 {
	own := HasOwnBody(j)
	return jobTable.fields(unsafe.Pointer(j)) | flag(len(j.Body) > 0 && !own, jobBody) | flag(own, jobBodyBytes) |
		flag(j.Origin != 0, jobOrigin) | flag(j.CreatedAt != 0, jobCreatedAt) |
		flag(isUUID, jobUUID) | flag(j.ID != "" && !isUUID, jobID) |
		flag(j.Type != j.Queue && j.Type != "", jobType)
}

// DecodeJob fills j from a record. bodyBytes is the size of a body with a key of its own, otherwise zero. stored has
// HasBody for such a body, and Rewritten if that was set. The body, the attributes and all strings except Queue and
// Type are views of b, which must not change while j is used. idText is the buffer for the text of a UUID, which must
// live as long; nil allocates one.
func DecodeJob(b []byte, seq uint64, j *core.Job, known *Interner, idText *[36]byte) (
	bodyBytes int, stored Parts, err error,
) {
	d := decoder{b: b}
	*j = core.Job{Seq: seq}
	f := d.open(jobTable.known)
	j.Queue = known.intern(d.bytes())
	if f&jobOrigin != 0 {
		j.Origin = core.Protocol(d.byte())
	}
	if f&jobCreatedAt != 0 {
		j.CreatedAt = core.Instant(d.varint())
	}
	if f&jobUUID != 0 {
		j.ID = uuidText(d.take(16), idText)
	}
	if f&jobID != 0 {
		j.ID = d.text()
	}
	if f&jobBodyBytes != 0 {
		bodyBytes, stored = d.bodyBytes(), HasBody
	}
	if f&jobRewritten != 0 {
		stored |= Rewritten
	}
	j.Type = j.Queue
	if f&jobType != 0 {
		j.Type = known.intern(d.bytes())
	}
	if rest := f >> jobFirst << jobFirst; rest != 0 {
		j.Rare = emptied[core.RareFields](nil, f&jobRare != 0)
		d.table(jobTable, unsafe.Pointer(j), rest, seq)
	}
	if f&jobBody != 0 {
		j.Body = d.take(uint64(len(d.b)))
	}
	if f&(jobBody|jobBodyBytes) == jobBody|jobBodyBytes || f&(jobUUID|jobID) == jobUUID|jobID {
		d.fail(ErrFields)
	}
	return bodyBytes, stored, d.close()
}

// bodyBytes limits the size to what core allows, so that damaged data cannot make readers allocate gigabytes.
func (d *decoder) bodyBytes() int {
	n := d.uvarint()
	if n > 4*core.MaxBodyBytes {
		d.fail(ErrRange)
		return 0
	}
	return int(n)
}
