package record

import (
	"encoding/binary"
	"time"

	"broker/core"
)

// InlineBytes is the size of the largest body that is stored within the record of its job. A larger body has a key of
// its own, and a Change that removes the job must state the size. The limit is small so that a start, which reads all
// records, stays fast.
const InlineBytes = 1 << 10

// Fields of a job, in the order in which they are written, after the queue and before the body. On disk: bits are never
// renumbered or reused, a new field takes the next bit (see Version). Sets of the first 7 fields take one byte, of the
// first 14 two.
const (
	jobBody = 1 << iota // the rest of the record; written last
	jobOrigin
	jobCreatedAt
	jobUUID // the ID as 16 bytes, if it is a UUID in lower-case text form
	jobID   // any other ID
	jobBodyBytes
	jobType
	jobFormat
	jobLeaseFor
	jobMaxFails
	jobBackoff
	jobExhausted // and Own, from the second bit on
	jobLeaseEnd
	jobDeadFor
	jobAttributes
	jobPriority
	jobReadyAt
	jobExpiresAt
	jobStartBefore
	jobMaxAttempts
	jobUniqueKey
	jobUnique
	jobUniqueUntil
	jobUniqueStart
	jobRetainUntil
	jobRetainFor
	jobEphemeral
	jobScheduledOrder
	jobParent
	jobAfter
	jobBatch
	jobCallbackFor
	jobPriorFails
	jobRewritten // no value
	jobTags
	jobSchedule
	jobTimeline
	jobTrace
	jobSeqOrder // no value
	jobTallies
	jobOnBroken
	jobCost
	jobRerunOf
	jobFailure

	jobKnown = 1<<iota - 1
)

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
	if f>>7 != 0 {
		dst = appendPolicy(dst, j, f)
		dst = appendTimes(dst, j, f)
		dst = appendLinks(dst, j, f)
	}
	if f&jobBody != 0 {
		dst = append(dst, j.Body...)
	}
	return dst, formatOfJob(f | pseudoFields(j))
}

func jobFields(j *core.Job, isUUID bool) uint64 {
	own := HasOwnBody(j)
	f := flag(len(j.Body) > 0 && !own, jobBody) | flag(own, jobBodyBytes) |
		flag(j.Origin != 0, jobOrigin) | flag(j.CreatedAt != 0, jobCreatedAt) |
		flag(isUUID, jobUUID) | flag(j.ID != "" && !isUUID, jobID) |
		flag(j.Type != j.Queue && j.Type != "", jobType)
	f |= flag(j.Format != 0, jobFormat) | flag(j.LeaseFor != 0, jobLeaseFor) |
		flag(j.MaxFails != 0, jobMaxFails) | flag(j.Backoff != 0, jobBackoff) |
		flag(j.Exhausted != 0 || j.Own != 0, jobExhausted) | flag(j.LeaseEnd != 0, jobLeaseEnd) |
		flag(j.DeadFor != 0, jobDeadFor) | flag(len(j.Attributes) > 0, jobAttributes) |
		flag(j.Priority != 0, jobPriority)
	f |= flag(j.ReadyAt != 0, jobReadyAt) | flag(j.ExpiresAt != 0, jobExpiresAt) |
		flag(j.StartBefore != 0, jobStartBefore) | flag(j.MaxAttempts != 0, jobMaxAttempts) |
		flag(j.UniqueKey != "", jobUniqueKey) | flag(j.Unique != 0, jobUnique) |
		flag(j.UniqueUntil != 0, jobUniqueUntil) | flag(j.UniqueStart, jobUniqueStart) |
		flag(j.RetainUntil != 0, jobRetainUntil) | flag(j.RetainFor != 0, jobRetainFor)
	return f | flag(j.Ephemeral, jobEphemeral) | flag(j.ScheduledOrder, jobScheduledOrder) |
		flag(j.Parent != 0, jobParent) | flag(len(j.After) > 0, jobAfter) | flag(j.Batch != 0, jobBatch) |
		flag(j.CallbackFor != 0, jobCallbackFor) | flag(j.PriorFails != 0, jobPriorFails) |
		flag(len(j.Tags) > 0, jobTags) | flag(j.Schedule != "", jobSchedule) |
		flag(j.Timeline != 0, jobTimeline) | flag(j.Trace != "", jobTrace) |
		flag(j.SeqOrder, jobSeqOrder) | flag(j.Tallies != 0, jobTallies) | flag(j.OnBroken != 0, jobOnBroken) |
		flag(j.Cost != 0, jobCost) | flag(j.RerunOf != 0, jobRerunOf) | flag(j.Failure != nil, jobFailure)
}

// appendPolicy writes jobFormat to jobPriority.
func appendPolicy(dst []byte, j *core.Job, f uint64) []byte {
	if f&jobFormat != 0 {
		dst = binary.AppendUvarint(dst, uint64(j.Format))
	}
	if f&jobLeaseFor != 0 {
		dst = binary.AppendVarint(dst, int64(j.LeaseFor))
	}
	if f&jobMaxFails != 0 {
		dst = binary.AppendUvarint(dst, uint64(j.MaxFails))
	}
	if f&jobBackoff != 0 {
		dst = binary.AppendUvarint(dst, uint64(j.Backoff))
	}
	if f&jobExhausted != 0 {
		dst = binary.AppendUvarint(dst, uint64(j.Exhausted)|uint64(j.Own)<<1)
	}
	if f&jobLeaseEnd != 0 {
		dst = binary.AppendUvarint(dst, uint64(j.LeaseEnd))
	}
	if f&jobDeadFor != 0 {
		dst = binary.AppendVarint(dst, int64(j.DeadFor))
	}
	if f&jobAttributes != 0 {
		dst = appendBytes(dst, j.Attributes)
	}
	if f&jobPriority != 0 {
		dst = binary.AppendVarint(dst, j.Priority)
	}
	return dst
}

// appendTimes writes jobReadyAt to jobRetainFor.
func appendTimes(dst []byte, j *core.Job, f uint64) []byte {
	if f&jobReadyAt != 0 {
		dst = binary.AppendVarint(dst, int64(j.ReadyAt-j.CreatedAt))
	}
	if f&jobExpiresAt != 0 {
		dst = binary.AppendVarint(dst, int64(j.ExpiresAt-j.CreatedAt))
	}
	if f&jobStartBefore != 0 {
		dst = binary.AppendVarint(dst, int64(j.StartBefore-j.CreatedAt))
	}
	if f&jobMaxAttempts != 0 {
		dst = binary.AppendUvarint(dst, uint64(j.MaxAttempts))
	}
	if f&jobUniqueKey != 0 {
		dst = appendText(dst, j.UniqueKey)
	}
	if f&jobUnique != 0 {
		dst = binary.AppendUvarint(dst, uint64(j.Unique))
	}
	if f&jobUniqueUntil != 0 {
		dst = binary.AppendVarint(dst, int64(j.UniqueUntil-j.CreatedAt))
	}
	if f&jobRetainUntil != 0 {
		dst = binary.AppendVarint(dst, int64(j.RetainUntil-j.CreatedAt))
	}
	if f&jobRetainFor != 0 {
		dst = binary.AppendVarint(dst, int64(j.RetainFor))
	}
	return dst
}

// appendLinks writes jobParent to jobFailure. Linked jobs are mostly close to each other, so differences are small.
func appendLinks(dst []byte, j *core.Job, f uint64) []byte {
	if f&jobParent != 0 {
		dst = binary.AppendUvarint(dst, j.Parent)
	}
	if f&jobAfter != 0 {
		dst = appendSeqs(dst, j.Seq, j.After)
	}
	if f&jobBatch != 0 {
		dst = binary.AppendUvarint(dst, j.Batch)
	}
	if f&jobCallbackFor != 0 {
		dst = binary.AppendUvarint(dst, j.CallbackFor)
	}
	if f&jobPriorFails != 0 {
		dst = binary.AppendUvarint(dst, uint64(j.PriorFails))
	}
	if f&jobTags != 0 {
		dst = appendTexts(dst, j.Tags)
	}
	if f&jobSchedule != 0 {
		dst = appendText(dst, j.Schedule)
	}
	if f&jobTimeline != 0 {
		dst = binary.AppendUvarint(dst, uint64(j.Timeline))
	}
	if f&jobTrace != 0 {
		dst = appendText(dst, j.Trace)
	}
	if f&jobTallies != 0 {
		dst = binary.AppendUvarint(dst, uint64(j.Tallies))
	}
	if f&jobOnBroken != 0 {
		dst = binary.AppendUvarint(dst, uint64(j.OnBroken))
	}
	if f&jobCost != 0 {
		dst = binary.AppendUvarint(dst, uint64(j.Cost))
	}
	if f&jobRerunOf != 0 {
		dst = binary.AppendUvarint(dst, j.RerunOf)
	}
	if f&jobFailure != 0 {
		dst = appendBytes(dst, AppendFailure(nil, j.Failure))
	}
	return dst
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
	f := d.open(jobKnown)
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
	if f>>7 != 0 {
		d.policy(j, f)
		d.times(j, f)
		d.links(j, f)
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

// policy is the inverse of appendPolicy.
func (d *decoder) policy(j *core.Job, f uint64) {
	if f&jobFormat != 0 {
		j.Format = core.Format(d.byte())
	}
	if f&jobLeaseFor != 0 {
		j.LeaseFor = time.Duration(d.varint())
	}
	if f&jobMaxFails != 0 {
		j.MaxFails = d.uint32()
	}
	if f&jobBackoff != 0 {
		j.Backoff = core.Backoff(d.byte())
	}
	if f&jobExhausted != 0 {
		v := d.byte()
		j.Exhausted, j.Own = core.Exhausted(v&1), core.PolicyFields(v>>1)
		if j.Own > core.JobFields {
			d.fail(ErrRange)
		}
	}
	if f&jobLeaseEnd != 0 {
		j.LeaseEnd = core.LeaseEnd(d.byte())
	}
	if f&jobDeadFor != 0 {
		j.DeadFor = time.Duration(d.varint())
	}
	if f&jobAttributes != 0 {
		j.Attributes = d.bytes()
	}
	if f&jobPriority != 0 {
		if j.Priority = d.varint(); j.Priority < core.MinPriority || j.Priority > core.MaxPriority {
			d.fail(ErrRange)
		}
	}
}

// times is the inverse of appendTimes.
func (d *decoder) times(j *core.Job, f uint64) {
	if f&jobReadyAt != 0 {
		j.ReadyAt = j.CreatedAt + core.Instant(d.varint())
	}
	if f&jobExpiresAt != 0 {
		j.ExpiresAt = j.CreatedAt + core.Instant(d.varint())
	}
	if f&jobStartBefore != 0 {
		j.StartBefore = j.CreatedAt + core.Instant(d.varint())
	}
	if f&jobMaxAttempts != 0 {
		j.MaxAttempts = d.uint32()
	}
	if f&jobUniqueKey != 0 {
		j.UniqueKey = d.text()
	}
	if f&jobUnique != 0 {
		j.Unique = core.UniquePolicy(d.byte())
	}
	if f&jobUniqueUntil != 0 {
		j.UniqueUntil = j.CreatedAt + core.Instant(d.varint())
	}
	j.UniqueStart = f&jobUniqueStart != 0
	if f&jobRetainUntil != 0 {
		j.RetainUntil = j.CreatedAt + core.Instant(d.varint())
	}
	if f&jobRetainFor != 0 {
		j.RetainFor = time.Duration(d.varint())
	}
	j.Ephemeral = f&jobEphemeral != 0
	j.ScheduledOrder = f&jobScheduledOrder != 0
}

// links is the inverse of appendLinks.
func (d *decoder) links(j *core.Job, f uint64) {
	if f&jobParent != 0 {
		j.Parent = d.uvarint()
	}
	if f&jobAfter != 0 {
		j.After = d.seqs(j.Seq, nil)
	}
	if f&jobBatch != 0 {
		j.Batch = d.uvarint()
	}
	if f&jobCallbackFor != 0 {
		j.CallbackFor = d.uvarint()
	}
	if f&jobPriorFails != 0 {
		j.PriorFails = d.uint32()
	}
	if f&jobTags != 0 {
		j.Tags = d.texts()
	}
	if f&jobSchedule != 0 {
		j.Schedule = d.text()
	}
	if f&jobTimeline != 0 {
		j.Timeline = d.slot()
	}
	if f&jobTrace != 0 {
		j.Trace = d.text()
	}
	j.SeqOrder = f&jobSeqOrder != 0
	if f&jobTallies != 0 {
		j.Tallies = core.Tallies(d.byte())
	}
	if f&jobOnBroken != 0 {
		if j.OnBroken = core.OnBroken(d.byte()); j.OnBroken > core.BrokenDrops {
			d.fail(ErrRange)
		}
	}
	if f&jobCost != 0 {
		j.Cost = d.uint32()
	}
	if f&jobRerunOf != 0 {
		j.RerunOf = d.uvarint()
	}
	if f&jobFailure != 0 {
		j.Failure = d.failure()
	}
}

// appendSeqs writes each number as its difference from the previous number, the first from base.
func appendSeqs(dst []byte, base uint64, seqs []uint64) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(seqs)))
	for _, s := range seqs {
		dst = binary.AppendVarint(dst, int64(s-base))
		base = s
	}
	return dst
}

// seqs is the inverse of appendSeqs; it appends to into.
func (d *decoder) seqs(base uint64, into []uint64) []uint64 {
	n := d.count()
	if into == nil && n > 0 {
		into = make([]uint64, 0, n)
	}
	for range n {
		base += uint64(d.varint())
		into = append(into, base)
	}
	return into
}
