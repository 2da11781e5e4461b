package packet

import "encoding/binary"

// The magics with which requests and answers start, and the size of a header.
const (
	RequestMagic = "\x00REQ"
	AnswerMagic  = "\x00RES"
	HeaderBytes  = 12
)

// Type is the second word of a header.
type Type uint32

// The packet types by their numbers on the wire. 5 is unused.
const (
	CanDo             Type = 1
	CantDo            Type = 2
	ResetAbilities    Type = 3
	PreSleep          Type = 4
	Unused            Type = 5
	Noop              Type = 6
	SubmitJob         Type = 7
	JobCreated        Type = 8
	GrabJob           Type = 9
	NoJob             Type = 10
	JobAssign         Type = 11
	WorkStatus        Type = 12
	WorkComplete      Type = 13
	WorkFail          Type = 14
	GetStatus         Type = 15
	EchoReq           Type = 16
	EchoRes           Type = 17
	SubmitJobBg       Type = 18
	Error             Type = 19
	StatusRes         Type = 20
	SubmitJobHigh     Type = 21
	SetClientID       Type = 22
	CanDoTimeout      Type = 23
	AllYours          Type = 24
	WorkException     Type = 25
	OptionReq         Type = 26
	OptionRes         Type = 27
	WorkData          Type = 28
	WorkWarning       Type = 29
	GrabJobUniq       Type = 30
	JobAssignUniq     Type = 31
	SubmitJobHighBg   Type = 32
	SubmitJobLow      Type = 33
	SubmitJobLowBg    Type = 34
	SubmitJobSched    Type = 35
	SubmitJobEpoch    Type = 36
	SubmitReduceJob   Type = 37
	SubmitReduceJobBg Type = 38
	GrabJobAll        Type = 39
	JobAssignAll      Type = 40
	GetStatusUnique   Type = 41
	StatusResUnique   Type = 42

	NumTypes = 43 // one more than the last
)

// MaxFields is the number of fields of the longest packet, SUBMIT_JOB_SCHED.
const MaxFields = 8

// Layout describes the payload of a packet.
type Layout struct {
	Name    string
	Fields  int  // the last one extends to the end of the packet; zero: the payload is ignored
	Request bool // sent by clients or workers
	Result  bool // result of a job: its handle, then data
}

// Layout returns the layout of a type below NumTypes.
func (t Type) Layout() *Layout { return &layouts[t] }

// layouts is the table of packet types. Packets that are not requests are always refused.
var layouts = [NumTypes]Layout{
	CanDo:             {Name: "CAN_DO", Fields: 1, Request: true},
	CantDo:            {Name: "CANT_DO", Fields: 1, Request: true},
	ResetAbilities:    {Name: "RESET_ABILITIES", Request: true},
	PreSleep:          {Name: "PRE_SLEEP", Request: true},
	Unused:            {Name: "UNUSED"},
	Noop:              {Name: "NOOP"},
	SubmitJob:         {Name: "SUBMIT_JOB", Fields: 3, Request: true},
	JobCreated:        {Name: "JOB_CREATED"},
	GrabJob:           {Name: "GRAB_JOB", Request: true},
	NoJob:             {Name: "NO_JOB"},
	JobAssign:         {Name: "JOB_ASSIGN"},
	WorkStatus:        {Name: "WORK_STATUS", Fields: 3, Request: true},
	WorkComplete:      {Name: "WORK_COMPLETE", Fields: 2, Request: true, Result: true},
	WorkFail:          {Name: "WORK_FAIL", Fields: 1, Request: true},
	GetStatus:         {Name: "GET_STATUS", Fields: 1, Request: true},
	EchoReq:           {Name: "ECHO_REQ", Fields: 1, Request: true},
	EchoRes:           {Name: "ECHO_RES"},
	SubmitJobBg:       {Name: "SUBMIT_JOB_BG", Fields: 3, Request: true},
	Error:             {Name: "ERROR"},
	StatusRes:         {Name: "STATUS_RES"},
	SubmitJobHigh:     {Name: "SUBMIT_JOB_HIGH", Fields: 3, Request: true},
	SetClientID:       {Name: "SET_CLIENT_ID", Fields: 1, Request: true},
	CanDoTimeout:      {Name: "CAN_DO_TIMEOUT", Fields: 2, Request: true},
	AllYours:          {Name: "ALL_YOURS"},
	WorkException:     {Name: "WORK_EXCEPTION", Fields: 2, Request: true, Result: true},
	OptionReq:         {Name: "OPTION_REQ", Fields: 1, Request: true},
	OptionRes:         {Name: "OPTION_RES"},
	WorkData:          {Name: "WORK_DATA", Fields: 2, Request: true, Result: true},
	WorkWarning:       {Name: "WORK_WARNING", Fields: 2, Request: true, Result: true},
	GrabJobUniq:       {Name: "GRAB_JOB_UNIQ", Request: true},
	JobAssignUniq:     {Name: "JOB_ASSIGN_UNIQ"},
	SubmitJobHighBg:   {Name: "SUBMIT_JOB_HIGH_BG", Fields: 3, Request: true},
	SubmitJobLow:      {Name: "SUBMIT_JOB_LOW", Fields: 3, Request: true},
	SubmitJobLowBg:    {Name: "SUBMIT_JOB_LOW_BG", Fields: 3, Request: true},
	SubmitJobSched:    {Name: "SUBMIT_JOB_SCHED", Fields: 8, Request: true},
	SubmitJobEpoch:    {Name: "SUBMIT_JOB_EPOCH", Fields: 4, Request: true},
	SubmitReduceJob:   {Name: "SUBMIT_REDUCE_JOB", Fields: 5, Request: true},
	SubmitReduceJobBg: {Name: "SUBMIT_REDUCE_JOB_BACKGROUND", Fields: 5, Request: true},
	GrabJobAll:        {Name: "GRAB_JOB_ALL", Request: true},
	JobAssignAll:      {Name: "JOB_ASSIGN_ALL"},
	GetStatusUnique:   {Name: "GET_STATUS_UNIQUE", Fields: 1, Request: true},
	StatusResUnique:   {Name: "STATUS_RES_UNIQUE"},
}

// Header reads the header at the start of b, which has at least HeaderBytes. ok reports whether it has this magic.
func Header(b []byte, magic string) (t Type, size uint32, ok bool) {
	return Type(binary.BigEndian.Uint32(b[4:])), binary.BigEndian.Uint32(b[8:]), string(b[:4]) == magic
}

// BeginAnswer appends the header of an answer without its size. End fills in the size.
func BeginAnswer(b []byte, t Type) []byte { return begin(b, AnswerMagic, t) }

func begin(b []byte, magic string, t Type) []byte {
	b = append(b, magic...)
	return append(b, 0, 0, byte(t>>8), byte(t), 0, 0, 0, 0)
}

// End sets the size of the packet that begins at start and ends with b.
func End(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start+8:], uint32(len(b)-start-HeaderBytes))
	return b
}

// Append appends a packet with the given fields.
func Append[T string | []byte](b []byte, magic string, t Type, fields ...T) []byte {
	start := len(b)
	b = begin(b, magic, t)
	for i, f := range fields {
		if i > 0 {
			b = append(b, 0)
		}
		b = append(b, f...)
	}
	return End(b, start)
}
