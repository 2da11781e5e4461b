package console

import (
	"strings"

	"broker/operate/service"
)

// diagnose describes the condition of a queue in some sentences, and why its next job waits.
func diagnose(q *service.Queue) string {
	waiting := plural(q.Ready, "job") + " " + verb(q.Ready, "wait")
	if q.OldestS >= 1 {
		waiting += ", the oldest for " + seconds(q.OldestS)
	}
	waiting += ". "
	why := ""
	if q.Wait != nil {
		why = q.Wait.Text
	}
	switch {
	case q.Ready == 0:
		return strings.TrimSpace(idleSentence(q) + " " + why)
	case q.Wait != nil && (q.Wait.Reason != "worker" || q.Workers+q.Leased == 0):
		return waiting + why
	case !q.Measured:
		return strings.TrimSpace(waiting + why)
	case q.OutRate == 0 && q.Leased > 0:
		running := plural(q.Leased, "job") + " " + isAre(q.Leased) + " running, and none has ended in the last minute. "
		return strings.TrimSpace(waiting + running + why)
	}
	return strings.TrimSpace(waiting + paceSentence(q) + " " + why)
}

// idleSentence describes a queue without waiting jobs.
func idleSentence(q *service.Queue) string {
	switch {
	case q.Leased > 0:
		return "Nothing waits; " + plural(q.Leased, "job") + " " + isAre(q.Leased) + " running."
	case q.Blocked > 0:
		return plural(q.Blocked, "job") + " " + verb(q.Blocked, "wait") + " for other jobs."
	case q.Retrying > 0:
		return "Nothing waits; " + plural(q.Retrying, "failed job") + " will be tried again."
	case q.Scheduled > 0:
		return "Nothing waits; " + plural(q.Scheduled, "job") + " " + isAre(q.Scheduled) + " due later."
	case q.Dead > 0:
		return "Nothing waits; " + plural(q.Dead, "job") + " " + isAre(q.Dead) + " dead."
	}
	return "Nothing waits."
}

// paceSentence compares the rates of finished and new jobs.
func paceSentence(q *service.Queue) string {
	busy := max(q.Workers, 1)
	pace := plural(busy, "worker") + " " + verb(busy, "finish") + " " + rate(q.OutRate) + ", " + rate(q.InRate) +
		" come in: "
	switch d := q.InRate - q.OutRate; {
	case d > 0.05:
		return pace + "the queue grows by " + rate(d) + "."
	case d < -0.05:
		return pace + "the queue is empty in about " + seconds(min(float64(q.Ready)/-d, 1e9)) + "."
	}
	return pace + "the queue keeps its length."
}

func rate(perSecond float64) string { return float(perSecond) + "/s" }
