package console

import "broker/operate/service"

// diagnose describes the condition of a queue in a sentence or two, and what blocks it. A limit may hold back the next job.
func diagnose(q *service.Queue, draining, limited bool) string {
	waiting := plural(q.Ready, "job") + " " + map[bool]string{true: "waits", false: "wait"}[q.Ready == 1]
	if q.OldestS >= 1 {
		waiting += ", the oldest for " + seconds(q.OldestS)
	}
	switch {
	case draining:
		return "The broker is draining and hands out no job: " + waiting + "."
	case q.Paused && q.PausedAt != nil:
		by := "Paused"
		if q.PausedBy != "" && q.PausedBy != anonymous {
			by += " by " + q.PausedBy
		}
		return by + " at " + clockTime(q.PausedAt) + " UTC: " + waiting + "."
	case q.Paused:
		return "Paused: " + waiting + "."
	case q.Ready == 0:
		return idleSentence(q)
	case q.Workers == 0 && q.Leased == 0:
		return "No worker asks for jobs of this queue: " + waiting + "."
	case q.Throttle != nil && q.Throttle.Concurrency > 0 && q.Leased >= int(q.Throttle.Concurrency):
		return "At most " + num(q.Throttle.Concurrency) + " of its jobs may run at once, and so many do: " + waiting + "."
	case limited:
		return "A limit is reached: " + plural(q.Leased, "job") + " " + isAre(q.Leased) + " running, and " + waiting + "."
	case q.OutRate == 0 && q.Leased > 0:
		return waiting + ". " + plural(q.Leased, "job") + " " + isAre(q.Leased) + " running, and none has ended in the last minute."
	}
	return waiting + ". " + paceSentence(q)
}

// idleSentence describes a queue without waiting jobs.
func idleSentence(q *service.Queue) string {
	switch {
	case q.Leased > 0:
		return "Nothing waits; " + plural(q.Leased, "job") + " " + isAre(q.Leased) + " running."
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
	finish := map[bool]string{true: "finishes ", false: "finish "}[busy == 1]
	pace := plural(busy, "worker") + " " + finish + rate(q.OutRate) + ", " + rate(q.InRate) + " come in: "
	switch d := q.InRate - q.OutRate; {
	case d > 0.05:
		return pace + "the queue grows by " + rate(d) + "."
	case d < -0.05:
		return pace + "the queue is empty in about " + seconds(min(float64(q.Ready)/-d, 1e9)) + "."
	}
	return pace + "the queue keeps its length."
}

func rate(perSecond float64) string { return float(perSecond) + "/s" }
