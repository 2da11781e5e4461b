package gearman

import "broker/frontends/gearman/packet"

// commands are the handlers of the requests. The text commands are in admin.go.
var commands = [packet.NumTypes]func(*session, *message){
	packet.CanDo:             (*session).canDo,
	packet.CantDo:            (*session).cantDo,
	packet.ResetAbilities:    (*session).resetAbilities,
	packet.PreSleep:          (*session).preSleep,
	packet.SubmitJob:         (*session).submitNow,
	packet.GrabJob:           (*session).grab,
	packet.WorkStatus:        (*session).workStatus,
	packet.WorkComplete:      (*session).workComplete,
	packet.WorkFail:          (*session).workFail,
	packet.GetStatus:         (*session).getStatus,
	packet.EchoReq:           (*session).echo,
	packet.SubmitJobBg:       (*session).submitNow,
	packet.SubmitJobHigh:     (*session).submitNow,
	packet.SetClientID:       (*session).setClientID,
	packet.CanDoTimeout:      (*session).canDo,
	packet.WorkException:     (*session).workException,
	packet.OptionReq:         (*session).option,
	packet.WorkData:          (*session).workData,
	packet.WorkWarning:       (*session).workData,
	packet.GrabJobUniq:       (*session).grab,
	packet.SubmitJobHighBg:   (*session).submitNow,
	packet.SubmitJobLow:      (*session).submitNow,
	packet.SubmitJobLowBg:    (*session).submitNow,
	packet.SubmitJobSched:    (*session).submitSched,
	packet.SubmitJobEpoch:    (*session).submitEpoch,
	packet.SubmitReduceJob:   (*session).submitReduce,
	packet.SubmitReduceJobBg: (*session).submitReduce,
	packet.GrabJobAll:        (*session).grab,
	packet.GetStatusUnique:   (*session).getStatusUnique,
}

// submitKind holds the properties of a job that the packet type of its submission implies.
type submitKind struct {
	priority   int64
	background bool
}

// submitKinds has a row for each submission.
var submitKinds = [packet.NumTypes]submitKind{
	packet.SubmitJob:         {},
	packet.SubmitJobHigh:     {priority: 1},
	packet.SubmitJobLow:      {priority: -1},
	packet.SubmitJobBg:       {background: true},
	packet.SubmitJobHighBg:   {background: true, priority: 1},
	packet.SubmitJobLowBg:    {background: true, priority: -1},
	packet.SubmitJobSched:    {background: true},
	packet.SubmitJobEpoch:    {background: true},
	packet.SubmitReduceJob:   {},
	packet.SubmitReduceJobBg: {background: true},
}

// noSuchJob is the error for a packet whose job does not exist or belongs to another connection.
func noSuchJob(t packet.Type) *wireError {
	switch t { //nolint:exhaustive // only packets that workers send
	case packet.WorkData, packet.WorkWarning:
		return &errNoSuchData
	case packet.WorkException:
		return &errNoSuchExcept
	}
	return &errNoSuchResult
}
