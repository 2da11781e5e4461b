package service

import (
	"time"

	"broker/access"
	"broker/core"
)

// TimelineEntry is an event of a job.
type TimelineEntry struct {
	Number   uint32     `json:"number" doc:"number of the entry, from 0; entries in the middle of a long timeline are not kept"`
	At       *time.Time `json:"at"`
	Kind     string     `json:"kind" example:"failed"`
	Protocol string     `json:"protocol,omitempty" doc:"of the worker, or of the client that caused it"`
	Worker   string     `json:"worker,omitempty"`
	Address  string     `json:"address,omitempty"`
	Queue    string     `json:"queue,omitempty" doc:"that the job came to"`
	Detail   string     `json:"detail,omitempty" doc:"failed: the error class"`
	Group    string     `json:"group,omitempty" doc:"failed: the failure group"`
	Text     string     `json:"text,omitempty" doc:"failed: the message"`
	Version  string     `json:"version,omitempty" doc:"leased, and the end of a lease: version of the worker's program"`
}

// timelineOf shows the entries of a timeline. It names only queues that the caller may read.
func timelineOf(t *core.Timeline, caller Caller) []TimelineEntry {
	if t == nil {
		return nil
	}
	all := make([]TimelineEntry, len(t.Entries))
	for i := range t.Entries {
		e := &t.Entries[i]
		all[i] = TimelineEntry{
			Number: e.Number, At: timeOf(e.At), Kind: eventKindName(e.Kind), Worker: text(e.Worker), Address: e.Address,
			Queue: text(e.Queue), Detail: text(e.Detail), Group: e.Group, Text: text(e.Text),
			Version: text(e.Version),
		}
		if e.Queue != "" && caller.may(access.Read, e.Queue) != nil {
			all[i].Queue = ""
		}
		if e.Kind == core.EventMoved && caller.may(access.Read, e.Detail) != nil { // the previous queue
			all[i].Detail = ""
		}
		if e.Protocol != core.Internal {
			all[i].Protocol = e.Protocol.String()
		}
	}
	return all
}
