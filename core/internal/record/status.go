package record

import (
	"encoding/binary"
	"time"

	"broker/core"
)

// Fields of a status, after the state. On disk, as for a job. The fields of an ordinary lease come first.
const (
	statusAttempts = 1 << iota
	statusReadyAt
	statusLeasedAt
	statusLeaseFor
	statusHolder
	statusHolderFrom
	statusPlaced
	statusWorker
	statusRequeued
	statusFails
	statusFailedAt
	statusUnlocked
	statusBroken
	statusExpiresAt
	statusWaiting
	statusChildren
	statusChildrenBroken
	statusClosed
	statusTried
	statusDoneFailed
	statusNum
	statusDen
	statusVerbatim
	statusText
	statusUpdatedAt
	statusEpochAhead
	statusLostLeases
	statusRerun
	statusEntries
	statusKeptByQueue
	statusGroup
	statusUnstored
	statusReleases
	statusTimeouts
	statusBurials
	statusKicks
	statusFirstLeasedAt
	statusQueue
	statusStopAfter
	statusLogChunks
	statusMovedFrom // From, After
	statusLeaseUntil

	statusKnown = 1<<iota - 1

	statusTally    = statusReleases | statusTimeouts | statusBurials | statusKicks | statusFirstLeasedAt
	statusProgress = statusNum | statusDen | statusVerbatim | statusText | statusUpdatedAt
)

// AppendStatus encodes s, and returns the first format that can carry it; seq is the number of its job.
func AppendStatus(dst []byte, seq uint64, s *Status) ([]byte, int) {
	f := statusFields(s)
	dst = append(dst, Version)
	dst = binary.AppendUvarint(dst, f)
	dst = binary.AppendUvarint(dst, uint64(s.State))
	dst = appendLease(dst, s, f)
	if f&statusFails != 0 {
		dst = binary.AppendUvarint(dst, uint64(s.Fails))
	}
	if f&statusFailedAt != 0 {
		dst = binary.AppendVarint(dst, int64(s.FailedAt))
	}
	if f&statusExpiresAt != 0 {
		dst = binary.AppendVarint(dst, int64(s.ExpiresAt))
	}
	if f&statusWaiting != 0 {
		dst = appendSeqs(dst, seq, s.Waiting)
	}
	if f&statusChildren != 0 {
		dst = binary.AppendUvarint(dst, uint64(s.Children))
	}
	if s.Progress != nil {
		dst = appendProgress(dst, s.Progress, f)
	}
	if f&statusEpochAhead != 0 {
		dst = binary.AppendUvarint(dst, uint64(s.EpochAhead))
	}
	if f&statusLostLeases != 0 {
		dst = binary.AppendUvarint(dst, uint64(s.LostLeases))
	}
	if f&statusEntries != 0 {
		dst = binary.AppendUvarint(dst, uint64(s.Entries))
	}
	if f&statusGroup != 0 {
		dst = appendText(dst, s.Group)
	}
	if f&statusUnstored != 0 {
		dst = appendSeqs(dst, seq, s.Unstored)
	}
	if f&statusTally != 0 {
		dst = appendTally(dst, s.Tally, f)
	}
	if f&statusQueue != 0 {
		dst = appendText(dst, s.Moved.Queue)
	}
	if f&statusStopAfter != 0 {
		dst = binary.AppendUvarint(dst, uint64(s.StopAfter))
	}
	if f&statusLogChunks != 0 {
		dst = binary.AppendUvarint(dst, uint64(s.LogChunks))
	}
	if f&statusMovedFrom != 0 {
		dst = binary.AppendUvarint(appendText(dst, s.Moved.From), uint64(s.Moved.After))
	}
	if f&statusLeaseUntil != 0 {
		dst = binary.AppendVarint(dst, int64(s.LeaseUntil-s.LeasedAt))
	}
	return dst, formatOfStatus(f)
}

func statusFields(s *Status) uint64 {
	return flag(s.Attempts != 0, statusAttempts) | flag(s.ReadyAt != 0, statusReadyAt) |
		flag(s.LeasedAt != 0, statusLeasedAt) | flag(s.LeaseFor != 0, statusLeaseFor) |
		flag(s.Holder != 0, statusHolder) | flag(s.HolderFrom != 0, statusHolderFrom) |
		flag(s.Placed, statusPlaced) | flag(s.Worker != "", statusWorker) | flag(s.Requeued, statusRequeued) |
		flag(s.Fails != 0, statusFails) | flag(s.FailedAt != 0, statusFailedAt) | flag(s.Unlocked, statusUnlocked) |
		flag(s.Broken, statusBroken) | flag(s.ExpiresAt != 0, statusExpiresAt) |
		flag(len(s.Waiting) > 0, statusWaiting) | flag(s.Children != 0, statusChildren) |
		flag(s.ChildrenBroken, statusChildrenBroken) | flag(s.Closed, statusClosed) | flag(s.Tried, statusTried) |
		flag(s.DoneFailed, statusDoneFailed) | progressFields(s.Progress) | flag(s.EpochAhead != 0, statusEpochAhead) |
		flag(s.LostLeases != 0, statusLostLeases) | flag(s.Rerun, statusRerun) |
		flag(s.Entries != 0, statusEntries) | flag(s.KeptByQueue, statusKeptByQueue) |
		flag(s.Group != "", statusGroup) | flag(len(s.Unstored) > 0, statusUnstored) |
		tallyFields(s.Tally) | flag(s.StopAfter != 0, statusStopAfter) | flag(s.LogChunks != 0, statusLogChunks) |
		movedFields(s.Moved) | flag(s.LeaseUntil != 0, statusLeaseUntil)
}

func movedFields(m *Moved) uint64 {
	if m == nil {
		return 0
	}
	return flag(m.Queue != "", statusQueue) | flag(m.From != "" || m.After != 0, statusMovedFrom)
}

func progressFields(p *core.Progress) uint64 {
	if p == nil {
		return 0
	}
	return flag(p.Num != 0, statusNum) | flag(p.Den != 0, statusDen) | flag(p.Verbatim != nil, statusVerbatim) |
		flag(p.Text != "", statusText) | flag(p.UpdatedAt != 0, statusUpdatedAt)
}

// appendLease writes statusAttempts to statusWorker.
func appendLease(dst []byte, s *Status, f uint64) []byte {
	if f&statusAttempts != 0 {
		dst = binary.AppendUvarint(dst, uint64(s.Attempts))
	}
	if f&statusReadyAt != 0 {
		dst = binary.AppendVarint(dst, int64(s.ReadyAt))
	}
	if f&statusLeasedAt != 0 {
		dst = binary.AppendVarint(dst, int64(s.LeasedAt-s.ReadyAt))
	}
	if f&statusLeaseFor != 0 {
		dst = binary.AppendVarint(dst, int64(s.LeaseFor))
	}
	if f&statusHolder != 0 {
		dst = binary.AppendUvarint(dst, uint64(s.Holder))
	}
	if f&statusHolderFrom != 0 {
		dst = binary.AppendUvarint(dst, uint64(s.HolderFrom))
	}
	if f&statusWorker != 0 {
		dst = appendText(dst, s.Worker)
	}
	return dst
}

// appendProgress writes statusNum to statusUpdatedAt.
func appendProgress(dst []byte, p *core.Progress, f uint64) []byte {
	if f&statusNum != 0 {
		dst = binary.AppendUvarint(dst, uint64(p.Num))
	}
	if f&statusDen != 0 {
		dst = binary.AppendUvarint(dst, uint64(p.Den))
	}
	if f&statusVerbatim != 0 {
		dst = appendBytes(dst, p.Verbatim)
	}
	if f&statusText != 0 {
		dst = appendText(dst, p.Text)
	}
	if f&statusUpdatedAt != 0 {
		dst = binary.AppendVarint(dst, int64(p.UpdatedAt))
	}
	return dst
}

// DecodeStatus fills s from a record, with views of b. It reuses the memory that s refers to.
func DecodeStatus(b []byte, seq uint64, s *Status) error {
	d := decoder{b: b}
	waiting, unstored, progress, tally, moved := s.Waiting[:0], s.Unstored[:0], s.Progress, s.Tally, s.Moved
	*s = Status{}
	f := d.open(statusKnown)
	s.State = core.State(d.byte())
	d.lease(s, f)
	s.setFlags(f)
	if f&statusFails != 0 {
		s.Fails = d.uint32()
	}
	if f&statusFailedAt != 0 {
		s.FailedAt = core.Instant(d.varint())
	}
	if f&statusExpiresAt != 0 {
		s.ExpiresAt = core.Instant(d.varint())
	}
	if f&statusWaiting != 0 {
		s.Waiting = d.seqs(seq, waiting)
	}
	if f&statusChildren != 0 {
		s.Children = d.uint32()
	}
	if f&statusProgress != 0 {
		if progress == nil {
			progress = new(core.Progress)
		}
		*progress = core.Progress{}
		d.progress(progress, f)
		s.Progress = progress
	}
	if f&statusEpochAhead != 0 {
		s.EpochAhead = d.uint32()
	}
	if f&statusLostLeases != 0 {
		s.LostLeases = d.byte()
	}
	if f&statusEntries != 0 {
		s.Entries = d.uint32()
	}
	if f&statusGroup != 0 {
		s.Group = d.text()
	}
	if f&statusUnstored != 0 {
		s.Unstored = d.seqs(seq, unstored)
	}
	if f&statusTally != 0 {
		if tally == nil {
			tally = new(core.Tally)
		}
		*tally = core.Tally{}
		d.tally(tally, f)
		s.Tally = tally
	}
	if f&(statusQueue|statusMovedFrom) != 0 {
		if moved == nil {
			moved = new(Moved)
		}
		*moved = Moved{}
		s.Moved = moved
	}
	if f&statusQueue != 0 {
		s.Moved.Queue = d.text()
	}
	if f&statusStopAfter != 0 {
		s.StopAfter = d.uint32()
	}
	if f&statusLogChunks != 0 {
		if s.LogChunks = d.byte(); s.LogChunks > core.LogChunks {
			d.fail(ErrRange)
		}
	}
	if f&statusMovedFrom != 0 {
		s.Moved.From, s.Moved.After = d.text(), d.uint32()
	}
	if f&statusLeaseUntil != 0 {
		s.LeaseUntil = s.LeasedAt + core.Instant(d.varint())
	}
	return d.close()
}

// setFlags sets the fields without a value.
func (s *Status) setFlags(f uint64) {
	s.Placed = f&statusPlaced != 0
	s.Requeued = f&statusRequeued != 0
	s.Unlocked = f&statusUnlocked != 0
	s.Broken = f&statusBroken != 0
	s.ChildrenBroken = f&statusChildrenBroken != 0
	s.Closed = f&statusClosed != 0
	s.Tried = f&statusTried != 0
	s.DoneFailed = f&statusDoneFailed != 0
	s.Rerun = f&statusRerun != 0
	s.KeptByQueue = f&statusKeptByQueue != 0
}

// lease is the inverse of appendLease.
func (d *decoder) lease(s *Status, f uint64) {
	if f&statusAttempts != 0 {
		s.Attempts = d.uint32()
	}
	if f&statusReadyAt != 0 {
		s.ReadyAt = core.Instant(d.varint())
	}
	if f&statusLeasedAt != 0 {
		s.LeasedAt = s.ReadyAt + core.Instant(d.varint())
	}
	if f&statusLeaseFor != 0 {
		s.LeaseFor = time.Duration(d.varint())
	}
	if f&statusHolder != 0 {
		s.Holder = core.Holder(d.byte())
	}
	if f&statusHolderFrom != 0 {
		s.HolderFrom = core.Protocol(d.byte())
	}
	if f&statusWorker != 0 {
		s.Worker = d.text()
	}
}

// progress is the inverse of appendProgress.
func (d *decoder) progress(p *core.Progress, f uint64) {
	if f&statusNum != 0 {
		p.Num = d.uint32()
	}
	if f&statusDen != 0 {
		p.Den = d.uint32()
	}
	if f&statusVerbatim != 0 {
		p.Verbatim = d.bytes()
	}
	if f&statusText != 0 {
		p.Text = d.text()
	}
	if f&statusUpdatedAt != 0 {
		p.UpdatedAt = core.Instant(d.varint())
	}
}
