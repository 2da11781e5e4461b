package machine

import (
	"encoding/json"
	"strings"

	"broker/core"
	"broker/core/internal/batch"
	"broker/core/internal/limit"
	"broker/core/internal/policy"
	"broker/core/internal/schedule"
)

// writeDocuments adds documents to the open batch. Of documents with the same name, the last one counts.
func (m *Machine) writeDocuments(c *client, op *core.WriteDocuments) {
	if m.list.IsChecked() {
		return
	}
	if m.opts.Persist {
		for _, d := range op.Documents {
			m.table.PutDocument(d)
		}
	}
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.table.Promise()})
}

// readDocuments lets the engine answer: the machine keeps no documents.
func (m *Machine) readDocuments(c *client, op *core.ReadDocuments) {
	read := *op
	m.replyWith(c, core.Reply{Kind: core.Answered, Tag: op.Tag, Answer: &core.Answer{}},
		Work{Needs: StoredDocuments, Documents: &read})
}

// ContentOf names the data that a metadata entry of the core belongs to, for people; empty: users would not miss it.
// Users would not miss counters, measurements and names of unused queues.
func ContentOf(name string, value []byte) string {
	switch {
	case strings.HasPrefix(name, queueMetaPrefix):
		var k queueMeta
		if json.Unmarshal(value, &k) == nil && k == (queueMeta{Kept: true}) {
			return ""
		}
		return "settings of queues"
	case IsRules(name), strings.HasPrefix(name, limit.SharedPrefix):
		return "limits of queues"
	case strings.HasPrefix(name, policy.Prefix):
		return "policies of queues and types"
	case strings.HasPrefix(name, schedule.Prefix), strings.HasPrefix(name, schedule.PositionPrefix):
		return "schedules"
	case strings.HasPrefix(name, batch.Prefix):
		return "batches"
	}
	return ""
}
