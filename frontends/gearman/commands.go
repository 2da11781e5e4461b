package gearman

// commands are the handlers of the requests. The text commands are in admin.go.
var commands = [packetTypes]func(*session, *message){
	canDo:             (*session).canDo,
	cantDo:            (*session).cantDo,
	resetAbilities:    (*session).resetAbilities,
	preSleep:          (*session).preSleep,
	submitJob:         (*session).submitNow,
	grabJob:           (*session).grab,
	workStatus:        (*session).workStatus,
	workComplete:      (*session).workComplete,
	workFail:          (*session).workFail,
	getStatus:         (*session).getStatus,
	echoReq:           (*session).echo,
	submitJobBg:       (*session).submitNow,
	submitJobHigh:     (*session).submitNow,
	setClientID:       (*session).setClientID,
	canDoTimeout:      (*session).canDo,
	workException:     (*session).workException,
	optionReq:         (*session).option,
	workData:          (*session).workData,
	workWarning:       (*session).workData,
	grabJobUniq:       (*session).grab,
	submitJobHighBg:   (*session).submitNow,
	submitJobLow:      (*session).submitNow,
	submitJobLowBg:    (*session).submitNow,
	submitJobSched:    (*session).submitSched,
	submitJobEpoch:    (*session).submitEpoch,
	submitReduceJob:   (*session).submitReduce,
	submitReduceJobBg: (*session).submitReduce,
	grabJobAll:        (*session).grab,
	getStatusUnique:   (*session).getStatusUnique,
}

// submitKind holds the properties of a job that the packet type of its submission implies.
type submitKind struct {
	priority   int64
	background bool
}

// submitKinds has a row for each submission.
var submitKinds = [packetTypes]submitKind{
	submitJob:         {},
	submitJobHigh:     {priority: 1},
	submitJobLow:      {priority: -1},
	submitJobBg:       {background: true},
	submitJobHighBg:   {background: true, priority: 1},
	submitJobLowBg:    {background: true, priority: -1},
	submitJobSched:    {background: true},
	submitJobEpoch:    {background: true},
	submitReduceJob:   {},
	submitReduceJobBg: {background: true},
}

// noSuchJob is the error for a packet whose job does not exist or belongs to another connection.
func noSuchJob(t packetType) *wireError {
	switch t { //nolint:exhaustive // only packets that workers send
	case workData, workWarning:
		return &errNoSuchData
	case workException:
		return &errNoSuchExcept
	}
	return &errNoSuchResult
}
