package gearman

// packetType is the second word of a header.
type packetType uint32

// The packet types by their numbers on the wire. 5 is unused.
const (
	canDo             packetType = 1
	cantDo            packetType = 2
	resetAbilities    packetType = 3
	preSleep          packetType = 4
	unusedType        packetType = 5
	noop              packetType = 6
	submitJob         packetType = 7
	jobCreated        packetType = 8
	grabJob           packetType = 9
	noJob             packetType = 10
	jobAssign         packetType = 11
	workStatus        packetType = 12
	workComplete      packetType = 13
	workFail          packetType = 14
	getStatus         packetType = 15
	echoReq           packetType = 16
	echoRes           packetType = 17
	submitJobBg       packetType = 18
	errorRes          packetType = 19
	statusRes         packetType = 20
	submitJobHigh     packetType = 21
	setClientID       packetType = 22
	canDoTimeout      packetType = 23
	allYours          packetType = 24
	workException     packetType = 25
	optionReq         packetType = 26
	optionRes         packetType = 27
	workData          packetType = 28
	workWarning       packetType = 29
	grabJobUniq       packetType = 30
	jobAssignUniq     packetType = 31
	submitJobHighBg   packetType = 32
	submitJobLow      packetType = 33
	submitJobLowBg    packetType = 34
	submitJobSched    packetType = 35
	submitJobEpoch    packetType = 36
	submitReduceJob   packetType = 37
	submitReduceJobBg packetType = 38
	grabJobAll        packetType = 39
	jobAssignAll      packetType = 40
	getStatusUnique   packetType = 41
	statusResUnique   packetType = 42

	packetTypes = 43 // one more than the last
)

// Limits of the protocol's fields, in bytes.
const (
	maxUniqueBytes   = 64
	maxClientIDBytes = 127
	maxProgressBytes = 4 << 10 // both numbers of a WORK_STATUS
)

// maxArgs is the number of fields of the longest packet, SUBMIT_JOB_SCHED.
const maxArgs = 8

// layout describes the payload of a packet.
type layout struct {
	name    string
	args    int  // number of fields; the last one extends to the end of the packet; zero: the payload is ignored
	request bool // sent by clients or workers
	result  bool // result of a job: its handle, then data
}

// layouts is the table of packet types. Packets that are not requests are always refused.
var layouts = [packetTypes]layout{
	canDo:             {name: "CAN_DO", args: 1, request: true},
	cantDo:            {name: "CANT_DO", args: 1, request: true},
	resetAbilities:    {name: "RESET_ABILITIES", request: true},
	preSleep:          {name: "PRE_SLEEP", request: true},
	unusedType:        {name: "UNUSED"},
	noop:              {name: "NOOP"},
	submitJob:         {name: "SUBMIT_JOB", args: 3, request: true},
	jobCreated:        {name: "JOB_CREATED"},
	grabJob:           {name: "GRAB_JOB", request: true},
	noJob:             {name: "NO_JOB"},
	jobAssign:         {name: "JOB_ASSIGN"},
	workStatus:        {name: "WORK_STATUS", args: 3, request: true},
	workComplete:      {name: "WORK_COMPLETE", args: 2, request: true, result: true},
	workFail:          {name: "WORK_FAIL", args: 1, request: true},
	getStatus:         {name: "GET_STATUS", args: 1, request: true},
	echoReq:           {name: "ECHO_REQ", args: 1, request: true},
	echoRes:           {name: "ECHO_RES"},
	submitJobBg:       {name: "SUBMIT_JOB_BG", args: 3, request: true},
	errorRes:          {name: "ERROR"},
	statusRes:         {name: "STATUS_RES"},
	submitJobHigh:     {name: "SUBMIT_JOB_HIGH", args: 3, request: true},
	setClientID:       {name: "SET_CLIENT_ID", args: 1, request: true},
	canDoTimeout:      {name: "CAN_DO_TIMEOUT", args: 2, request: true},
	allYours:          {name: "ALL_YOURS"},
	workException:     {name: "WORK_EXCEPTION", args: 2, request: true, result: true},
	optionReq:         {name: "OPTION_REQ", args: 1, request: true},
	optionRes:         {name: "OPTION_RES"},
	workData:          {name: "WORK_DATA", args: 2, request: true, result: true},
	workWarning:       {name: "WORK_WARNING", args: 2, request: true, result: true},
	grabJobUniq:       {name: "GRAB_JOB_UNIQ", request: true},
	jobAssignUniq:     {name: "JOB_ASSIGN_UNIQ"},
	submitJobHighBg:   {name: "SUBMIT_JOB_HIGH_BG", args: 3, request: true},
	submitJobLow:      {name: "SUBMIT_JOB_LOW", args: 3, request: true},
	submitJobLowBg:    {name: "SUBMIT_JOB_LOW_BG", args: 3, request: true},
	submitJobSched:    {name: "SUBMIT_JOB_SCHED", args: 8, request: true},
	submitJobEpoch:    {name: "SUBMIT_JOB_EPOCH", args: 4, request: true},
	submitReduceJob:   {name: "SUBMIT_REDUCE_JOB", args: 5, request: true},
	submitReduceJobBg: {name: "SUBMIT_REDUCE_JOB_BACKGROUND", args: 5, request: true},
	grabJobAll:        {name: "GRAB_JOB_ALL", request: true},
	jobAssignAll:      {name: "JOB_ASSIGN_ALL"},
	getStatusUnique:   {name: "GET_STATUS_UNIQUE", args: 1, request: true},
	statusResUnique:   {name: "STATUS_RES_UNIQUE"},
}
