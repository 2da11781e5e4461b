package service

// SQSAction is how often clients of SQS have asked for an action since the start, by what came of it.
type SQSAction struct {
	Name                  string
	Done, Refused, Failed uint64
	Seconds               float64 // that the replies took, long polls included
}
