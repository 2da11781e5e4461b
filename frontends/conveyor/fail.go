package conveyor

import (
	"broker/access"
	"broker/core"
)

// A failure and a restart are pipelines of several commands. The first deletes the job, and the last puts it into
// another list.
//
//	DEL job:U │ DEL job:U:onComplete │ DEL job:U:children │ SREM jobs:active U │ ZADD scheduled    the job failed and is retried
//	                                                                           │ LPUSH failed      the job failed finally
//	                                                                           │ LPUSH queue:Q     its worker has died
//
// Nothing changes before the last command. If the client disconnects in between, its session releases the job, so
// nothing is lost.

// maxPipelines limits the jobs of a session between the first and the last command.
const maxPipelines = 10_000

// beginPipeline records that the failure or restart of a running job has begun. It returns false if the job is not
// running.
func (s *session) beginPipeline(uuid string) bool {
	known := s.inspect(uuid)
	if known == nil || known.Info.State != core.Leased || len(s.pipelines) >= maxPipelines ||
		!s.AllowedFor(access.Consume, known.Info.Queue) {
		return false
	}
	if s.pipelines == nil {
		s.pipelines = make(map[string]uint32)
	}
	s.pipelines[uuid] = known.Info.Epoch
	return true
}

// takePipeline returns the epoch of the lease that a pipeline ends.
func (s *session) takePipeline(uuid string) (epoch uint32, begun bool) {
	epoch, begun = s.pipelines[uuid]
	delete(s.pipelines, uuid)
	return epoch, begun
}

// abortPipelines releases the jobs of unfinished pipelines.
func (s *session) abortPipelines() {
	for uuid, epoch := range s.pipelines {
		s.ask(&core.Release{Tag: 1, Ref: core.Ref{ID: uuid}, Epoch: epoch})
	}
	s.pipelines = nil
}

// failure makes a core.Failure, with the message that the client may have set.
func (e *envelope) failure() *core.Failure {
	message := e.lastFailure
	if message == "" {
		message = "the worker's function returned an error"
	}
	return &core.Failure{Type: "Conveyor", Message: message}
}

// retry ends a failed run; the job is retried at due. The client has counted the failure in the job.
func (s *session) retry(e *envelope, known *core.Reply, due core.Instant) (isNew bool, r core.Reply) {
	epoch, begun := s.takePipeline(e.uuid)
	if !begun { // the client repeats a submission
		return false, core.Reply{Kind: core.Accepted}
	}
	return true, s.endFailed(known, &core.Fail{RetryAt: due, Failure: e.failure()}, epoch)
}

// bury ends a finally failed run. known is nil for a job that does not exist.
func (s *session) bury(e *envelope, known *core.Reply) core.Reply {
	if known == nil {
		return core.Reply{Kind: core.Failed, Err: core.ErrNotFound}
	}
	epoch, begun := s.takePipeline(e.uuid)
	switch {
	case begun && known.Info.State == core.Leased:
		return s.endFailed(known, &core.Fail{Final: true, Failure: e.failure()}, epoch)
	case known.Info.State == core.Dead:
		return core.Reply{Kind: core.Accepted}
	}
	return core.Reply{Kind: core.Failed, Err: core.ErrNotLeased}
}

// endFailed ends a run as failed. The core counts the failure, and encodeJob shows the count to clients.
func (s *session) endFailed(known *core.Reply, end *core.Fail, epoch uint32) core.Reply {
	end.Tag, end.Ref, end.Authority = 1, core.Ref{Seq: known.Seq}, core.ByAnyone
	end.If = core.Condition{Epoch: epoch, HasEpoch: true}
	return *s.ask(end)
}
