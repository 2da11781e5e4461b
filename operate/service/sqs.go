package service

// SQSAction counts the SQS requests with an action since the start, by result.
type SQSAction struct {
	Name                  string
	Done, Refused, Failed uint64
	Seconds               float64 // time of the replies, including long polls
}
